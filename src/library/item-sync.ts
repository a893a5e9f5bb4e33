import type { Fence } from "../async/records.ts";
import type { ItemDraft, Items } from "./contract.ts";

/**
 * Operations of imports and refreshes on items. Each is durable when it resolves, and yields between batches. A refresh passes the fence of its job:
 * the operations reject with `cancelled` if another engine has taken it over.
 */
export interface ItemSync {
  /**
   * Applies at most {@link MAX_UPSERT_DRAFTS} drafts. Adds items whose (externalPlaylistId, sourceKey) is new or whose
   * `sourceKey` is null; a new entry of a playlist takes over the user's item with the same title and content instead. Updates items that differ, except locked items and members that the user has edited; items in
   * the trash stay there. Skips items that the user has deleted permanently. Cuts texts that are too long. Writes nothing
   * for unchanged items. Rejects with `too_many` if the playlist is full; the changes of earlier calls stay.
   */
  upsert(drafts: readonly ItemDraft[], fence?: Fence): Promise<UpsertOutcome>;
  /**
   * Call it after a complete pass over a list. Permanently deletes the playlist's items that are not in `keep`, except
   * locked ones, and the tombstones of entries that the list no longer has. Resolves to the number of deleted items.
   */
  removeExcept(externalPlaylistId: number, keep: ReadonlySet<number>, fence?: Fence): Promise<number>;
  /** Deletes all items of a playlist that is being deleted, locked ones included. */
  removeAll(externalPlaylistId: number): Promise<number>;
  /** Number of items of a playlist outside the trash. */
  countOf(externalPlaylistId: number): number;
}

/** The result of `upsert`. */
export interface UpsertOutcome {
  /** By draft; undefined if the user deleted the item permanently or its content is invalid. */
  readonly ids: readonly (number | undefined)[];
  readonly added: number;
  readonly changed: number;
}

/** The items with the operations that only the library uses. */
export interface ItemStore extends Items, ItemSync {}

/** Limit of drafts for one `upsert`. */
export const MAX_UPSERT_DRAFTS = 500;
