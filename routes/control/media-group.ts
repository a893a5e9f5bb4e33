import { SluiceError } from "../../src/base/errors.ts";
import type { ItemChange, Items } from "../../src/library/contract.ts";
import { clipped } from "./params.ts";

/** Which items a change applies to. */
interface GroupOptions {
  /** Whether the change applies to all sources of the channel, not only to the named item. */
  readonly wholeGroup: boolean;
  /** The required owner of the items, if given. */
  readonly owner?: string | undefined;
}

/** Changes an item, and the other items of its media group if `wholeGroup`. Rejects with `unknown_item`. */
export async function changeGroup(
  items: Items,
  id: number,
  change: ItemChange,
  { wholeGroup, owner }: GroupOptions,
): Promise<void> {
  await checkOwner(items, id, owner);
  // A new title removes an item from its group, so the group is read first.
  const others = wholeGroup ? (await items.group(id)).filter((other) => other !== id) : [];
  await items.update(id, change);
  if (others.length > 0) await items.updateMany(others, change);
}

/** Changes several items. Rejects with `unknown_item`. */
export async function changeMany(
  items: Items,
  ids: readonly number[],
  change: ItemChange,
  { wholeGroup, owner }: GroupOptions,
): Promise<void> {
  await checkOwnerOfAll(items, ids, owner);
  const all = wholeGroup ? await groupsOf(items, ids) : ids;
  await items.updateMany(all, change);
}

/** Returns the ids and those of all items in the same groups. */
async function groupsOf(items: Items, ids: readonly number[]): Promise<readonly number[]> {
  const all = new Set<number>();
  for (const id of ids) {
    if (all.has(id)) continue;
    for (const member of await items.group(id)) all.add(member);
  }
  return [...all];
}

/** Moves an item to the trash, with `wholeGroup` also the other sources of its channel. */
export async function deleteGroup(items: Items, id: number, wholeGroup: boolean): Promise<void> {
  await items.delete(wholeGroup ? await items.group(id) : [id]);
}

async function checkOwner(items: Items, id: number, owner: string | undefined): Promise<void> {
  if (owner === undefined || (await items.get(id))?.owner === owner) return;
  throw new SluiceError("unknown_item", `${clipped(owner)} has no item ${id}`);
}

/** Counts the items instead of reading them, because there may be ten thousand. */
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
