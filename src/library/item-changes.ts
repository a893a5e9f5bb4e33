import type { UnixSeconds } from "../base/time.ts";
import type { EditableMember, Item, ItemChange, ItemFacts } from "./contract.ts";
import { isSameMember, SOURCE_MEMBERS, type SourceMembers } from "./item-members.ts";
import { DEFAULTS, type KeptItem } from "./item-record.ts";

/** A new item. */
export function newItem(
  id: number,
  members: SourceMembers,
  origin: Pick<Item, "externalPlaylistId" | "sourceKey">,
  now: UnixSeconds,
): KeptItem {
  return { item: { ...DEFAULTS, ...members, ...origin, id, createdAt: now, updatedAt: now }, source: {} };
}

/** The item as the user wants it; undefined where it is so already. */
export function withChange(kept: KeptItem, change: ItemChange, now: UnixSeconds): KeptItem | undefined {
  const names = (Object.keys(change) as EditableMember[]).filter(
    (name) => !isSameMember(kept.item[name], change[name]!),
  );
  if (names.length === 0) return undefined;
  const edited = [...new Set([...kept.item.edited, ...names])];
  const source = { ...sourceBehind(kept, names), ...kept.source };
  return { item: { ...kept.item, ...change, edited, updatedAt: now }, source };
}

/** The item with what was found out about its content; undefined where it is known already. */
export function withFacts(kept: KeptItem, facts: ItemFacts): KeptItem | undefined {
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
 * The item after its source says something new; undefined where it says nothing new. What the user has edited stays,
 * and so does what was found out, as long as the source says of that what it said before.
 */
export function withSource(kept: KeptItem, members: SourceMembers, now: UnixSeconds): KeptItem | undefined {
  const before = sourceOf(kept);
  const names = SOURCE_MEMBERS.filter((name) => !isSameMember(before[name], members[name]));
  if (names.length === 0) return undefined;
  const isOtherContent = names.includes("content");
  const item: Record<string, unknown> = { ...kept.item };
  const source: Record<string, unknown> = { ...kept.source };
  let isSeen = false;
  for (const name of SOURCE_MEMBERS) {
    const isEdited = (kept.item.edited as readonly string[]).includes(name);
    // What was found out about other content is worth nothing now.
    const isStale = isOtherContent && !isEdited && name in source;
    if (!isStale && !names.includes(name)) continue;
    if (isEdited) {
      source[name] = members[name];
      continue;
    }
    item[name] = members[name];
    delete source[name];
    isSeen = true;
  }
  if (isSeen) item.updatedAt = now;
  return { item: item as unknown as Item, source };
}

/** What the source of an item said last. */
export function sourceOf({ item, source }: KeptItem): SourceMembers {
  // As a rule it is what the item has: no copy of a hundred thousand.
  if (Object.keys(source).length === 0) return item as SourceMembers;
  return { ...(item as SourceMembers), ...source };
}

/** The source's word on members that are about to differ from it; nothing for items that have no source. */
function sourceBehind({ item }: KeptItem, names: readonly (keyof Item)[]): Partial<SourceMembers> {
  if (item.sourceKey === null) return {};
  const spoken = SOURCE_MEMBERS.filter((name) => names.includes(name));
  return Object.fromEntries(spoken.map((name) => [name, item[name]]));
}
