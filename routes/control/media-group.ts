import { SluiceError } from "../../src/base/errors.ts";
import type { ItemChange, Items } from "../../src/library/contract.ts";
import { clipped } from "./params.ts";

/** How a change finds its items. */
export interface GroupChoice {
  /** All sources of the channel, not only the one that is named. */
  readonly wholeGroup: boolean;
  /** Whose item it must be, where that was said. */
  readonly owner?: string | undefined;
}

/**
 * Changes the item that was named, and its group where that was asked for.
 *
 * CHOICE(locked): whoever names one item means it, locked or not. Where a call reaches items that it does not name (a media
 * group, a refresh, clearing) or names many, locked ones stay as they are; a call on many that finds nothing but locked ones
 * is an error.
 */
export async function changeGroup(
  items: Items,
  id: number,
  change: ItemChange,
  { wholeGroup, owner }: GroupChoice,
): Promise<void> {
  await checkOwner(items, id, owner);
  // A new title takes an item out of its group: the group is looked up first.
  const others = wholeGroup ? (await items.group(id)).filter((other) => other !== id) : [];
  await items.update(id, change);
  if (others.length > 0) await items.updateMany(others, change);
}

/** The same change of many items. */
export async function changeMany(
  items: Items,
  ids: readonly number[],
  change: ItemChange,
  { wholeGroup, owner }: GroupChoice,
): Promise<void> {
  await checkOwnerOfAll(items, ids, owner);
  const all = wholeGroup ? await groupsOf(items, ids) : ids;
  const changed = await items.updateMany(all, change);
  if (changed === 0) await refuseWhereLocked(items, all);
}

/** The ids and all that share a group with them. */
async function groupsOf(items: Items, ids: readonly number[]): Promise<readonly number[]> {
  const all = new Set<number>();
  for (const id of ids) {
    if (all.has(id)) continue;
    for (const member of await items.group(id)) all.add(member);
  }
  return [...all];
}

/** To the trash: the item, and the sources of its channel that are not locked. */
export async function deleteGroup(items: Items, id: number, wholeGroup: boolean): Promise<void> {
  const others = wholeGroup ? (await items.group(id)).filter((other) => other !== id) : [];
  await items.delete([id]);
  // A call with one id would take a locked item, too: these were not named.
  const open: number[] = [];
  if (others.length > 0)
    for await (const item of items.each({ ids: others })) if (!item.isLocked) open.push(item.id);
  if (open.length > 0) await items.delete(open);
}

/** Says so where a call on many items found locked ones only. */
export async function refuseWhereLocked(items: Items, ids: readonly number[]): Promise<void> {
  let locked: number | undefined;
  for await (const { id, isLocked } of items.each({ ids })) {
    // It was as it should be already.
    if (!isLocked) return;
    locked ??= id;
  }
  if (locked === undefined) return;
  throw new SluiceError("item_locked", `${locked}; unlock it with playlist_item_set_locked first`);
}

async function checkOwner(items: Items, id: number, owner: string | undefined): Promise<void> {
  if (owner === undefined || (await items.get(id))?.owner === owner) return;
  throw new SluiceError("unknown_item", `${clipped(owner)} has no item ${id}`);
}

/** Counted, not read: there may be ten thousand. */
async function checkOwnerOfAll(
  items: Items,
  ids: readonly number[],
  owner: string | undefined,
): Promise<void> {
  if (owner === undefined) return;
  const active = await items.query({ ids, owner, limit: 0 });
  const inTrash = await items.query({ ids, owner, state: "trash", limit: 0 });
  if (active.total + inTrash.total < new Set(ids).size)
    throw new SluiceError("unknown_item", `not all of these items belong to ${clipped(owner)}`);
}
