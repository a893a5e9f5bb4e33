import type { UnixSeconds } from "../base/time.ts";
import type { EditableMember, Item, ItemChange, ItemFacts } from "./contract.ts";
import { isSameMember, SOURCE_MEMBERS, type SourceMembers } from "./item-members.ts";
import { DEFAULTS, type StoredItem } from "./item-record.ts";

/** Creates an item. */
export function newItem(
  id: number,
  members: SourceMembers,
  origin: Pick<Item, "externalPlaylistId" | "sourceKey">,
  now: UnixSeconds,
): StoredItem {
  return { item: { ...DEFAULTS, ...members, ...origin, id, createdAt: now, updatedAt: now }, source: {} };
}

/** Applies a user's change; returns undefined if it changes nothing. */
export function withChange(kept: StoredItem, change: ItemChange, now: UnixSeconds): StoredItem | undefined {
  const names = (Object.keys(change) as EditableMember[]).filter(
    (name) => !isSameMember(kept.item[name], change[name]!),
  );
  if (names.length === 0) return undefined;
  const edited = [...new Set([...kept.item.edited, ...names])];
  const source = { ...sourceBehind(kept, names), ...kept.source };
  return { item: { ...kept.item, ...change, edited, updatedAt: now }, source };
}

/** Applies facts about the content; returns undefined if they change nothing. */
export function withFacts(kept: StoredItem, facts: ItemFacts): StoredItem | undefined {
  const { infohash, contentId, isLive, fileCount } = facts;
  const before = kept.item.content;
  const found: Partial<Item> = {
    content: { ...before, infohash: infohash ?? before.infohash, contentId: contentId ?? before.contentId },
    ...(isLive !== undefined && { isLive }),
    ...(fileCount !== undefined && { fileCount }),
  };
  const names = (Object.keys(found) as (keyof Item)[]).filter(
    (name) => !isSameMember(kept.item[name], found[name]!),
  );
  if (names.length === 0) return undefined;
  return { item: { ...kept.item, ...found }, source: { ...sourceBehind(kept, names), ...kept.source } };
}

/**
 * Applies a new version from the source; returns undefined if the source has not changed. Keeps the user's edits, and
 * keeps facts of members that the source has not changed.
 */
export function withSource(
  kept: StoredItem,
  members: SourceMembers,
  now: UnixSeconds,
): StoredItem | undefined {
  const before = sourceOf(kept);
  const names = SOURCE_MEMBERS.filter((name) => !isSameMember(before[name], members[name]));
  if (names.length === 0) return undefined;
  const isOtherContent = names.includes("content");
  const item: Record<string, unknown> = { ...kept.item };
  const source: Record<string, unknown> = { ...kept.source };
  let isVisible = false;
  for (const name of SOURCE_MEMBERS) {
    const isEdited = (kept.item.edited as readonly string[]).includes(name);
    // Facts about the previous content are no longer valid.
    const isStale = isOtherContent && !isEdited && name in source;
    if (!isStale && !names.includes(name)) continue;
    if (isEdited) {
      source[name] = members[name];
      continue;
    }
    item[name] = members[name];
    delete source[name];
    isVisible = true;
  }
  if (isVisible) item.updatedAt = now;
  return { item: item as unknown as Item, source };
}

/** Returns the members as the source last listed them. */
export function sourceOf({ item, source }: StoredItem): SourceMembers {
  // Usually the item itself; a copy of each item would cost too much.
  if (Object.keys(source).length === 0) return item as SourceMembers;
  return { ...(item as SourceMembers), ...source };
}

/** Returns the source's values of members that are about to differ from it; empty for items without a source. */
function sourceBehind({ item }: StoredItem, names: readonly (keyof Item)[]): Partial<SourceMembers> {
  if (item.sourceKey === null) return {};
  const changed = SOURCE_MEMBERS.filter((name) => names.includes(name));
  return Object.fromEntries(changed.map((name) => [name, item[name]]));
}
