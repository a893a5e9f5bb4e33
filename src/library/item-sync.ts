import type { ItemDraft, Items } from "./contract.ts";

/** What imports and refreshes do to items. Each call is durable when it resolves, and lets others run in between. */
export interface ItemSync {
  /**
   * At most {@link MAX_UPSERT_DRAFTS} drafts. Adds those whose (externalPlaylistId, sourceKey) is new; changes those that differ, but
   * for locked items and members that the user has edited; trash stays trash. An unchanged list costs no write. A `sourceKey`
   * of null always adds. What the user deleted for good does not come back as long as its source lists it. Texts that are
   * too long are cut. Rejects with `too_many` where the playlist is full; what earlier calls brought stays.
   */
  upsert(drafts: readonly ItemDraft[]): Promise<UpsertOutcome>;
  /**
   * After a whole pass over the source: deletes for good what came from this playlist and is not in `keep`, but for locked items. Resolves
   * to how many went. Forgets what the user deleted for good and the pass did not list any more.
   */
  removeExcept(externalPlaylistId: number, keep: ReadonlySet<number>): Promise<number>;
  /** The playlist itself goes: deletes all that came from it; locked items stay and belong to no playlist then. */
  removeAll(externalPlaylistId: number): Promise<number>;
  /** How many items came from this playlist, without those in the trash. */
  countOf(externalPlaylistId: number): number;
}

/** What became of the drafts of one `upsert`. */
export interface UpsertOutcome {
  /** In the order of the drafts; undefined where the user deleted it for good, or where its content is too long to be kept. */
  readonly ids: readonly (number | undefined)[];
  readonly added: number;
  readonly changed: number;
}

/** The items, as the library itself sees them. */
export interface ItemStore extends Items, ItemSync {}

/** How many drafts one `upsert` takes. */
export const MAX_UPSERT_DRAFTS = 500;
