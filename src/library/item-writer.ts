import { assert } from "../base/assert.ts";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { MAX_COMMIT_BYTES } from "../base/store-limits.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import type { ItemIndex } from "./item-index.ts";
import { pause } from "./item-pause.ts";
import { decodeItem, encodeItem, itemKey, type KeptItem, recordBytes } from "./item-record.ts";
import type { Tombstones } from "./item-tombstones.ts";
import { Turns } from "./item-turns.ts";
import { BATCH_ITEMS, MAX_ITEMS } from "./limits.ts";

/** Where the next id is kept. */
export const META_KEY = "meta/items";

/** Room for the next id and for the keys themselves, which some stores count. */
const SPARE_BYTES = 64 * 1024;

/** What a commit writes for one item. */
interface Step {
  readonly kept: KeptItem;
  readonly record: unknown;
  readonly bytes: number;
}

/** What a writer is made of. */
export interface ItemWriterParts {
  readonly store: KeyValueStore;
  readonly log: Log;
  readonly index: ItemIndex;
  readonly tombstones: Tombstones;
  readonly nextId: number;
  /** The next id as the store has it. */
  readonly savedMeta: unknown;
}

/**
 * Writes records first and the index after them, so that the index never tells of what is not durable. Everything but
 * `read` is called inside of `turns`.
 */
export class ItemWriter {
  readonly turns = new Turns();
  readonly #parts: ItemWriterParts;
  #nextId: number;
  #savedMeta: unknown;
  #isToldOfDamage = false;

  constructor(parts: ItemWriterParts) {
    this.#parts = parts;
    this.#nextId = parts.nextId;
    this.#savedMeta = parts.savedMeta;
  }

  /** An id that no item has had. */
  takeId(): number {
    return this.#nextId++;
  }

  /** Throws `SluiceError("too_many")` where there is no room for so many more. */
  makeRoom(more: number): void {
    if (this.#parts.index.size + more > MAX_ITEMS)
      throw new SluiceError("too_many", `the playlist holds ${MAX_ITEMS} items at most, trash included`);
  }

  /** The record of an item; undefined where it has gone. */
  async read(id: number): Promise<KeptItem | undefined> {
    if (this.#parts.index.columns.slotOf(id) === -1) return undefined;
    const value = await this.#parts.store.get(itemKey(id));
    if (value === undefined) return undefined;
    const kept = decodeItem(id, value);
    if (kept === undefined && !this.#isToldOfDamage) {
      this.#isToldOfDamage = true;
      this.#parts.log.warn("a record of the playlist is damaged and left out", { key: itemKey(id) });
    }
    return kept;
  }

  /** The items of these ids that are still there, in their order. */
  async readMany(ids: readonly number[]): Promise<KeptItem[]> {
    const all = await Promise.all(ids.map((id) => this.read(id)));
    return all.filter((kept) => kept !== undefined);
  }

  /**
   * Writes items in as few commits as may be, in their order; new ones have ids that were taken in that order. Each commit is
   * whole: after a failure, or a crash, the first ones are there and the others are as they were.
   */
  async put(items: readonly KeptItem[]): Promise<void> {
    for (const group of groupsOf(items.map(stepOf))) {
      const newest = Math.max(...group.map(({ kept }) => kept.item.id));
      const isNew = newest >= nextIdOf(this.#savedMeta);
      const meta = { nextId: newest + 1 };
      const isDone = await this.#parts.store.commit({
        check: isNew ? [[META_KEY, this.#savedMeta]] : [],
        set: [
          ...group.map(({ kept, record }) => [itemKey(kept.item.id), record] as const),
          ...(isNew ? [[META_KEY, meta] as const] : []),
        ],
      });
      assert(isDone, "somebody else adds items to this store");
      if (isNew) this.#savedMeta = meta;
      this.#parts.index.put(group.map(({ kept }) => kept));
      await pause();
    }
  }

  /** Deletes items for good; with tombstones where their sources would bring them back. At most half a commit's keys. */
  async remove(ids: readonly number[], options: { readonly withTombstones: boolean }): Promise<void> {
    const { store, index, tombstones } = this.#parts;
    const buried: string[] = [];
    if (options.withTombstones) {
      for (const { item } of await this.readMany(ids)) {
        const key = tombstones.keyFor(item.externalPlaylistId, item.sourceKey);
        if (key !== undefined) buried.push(key);
      }
      await pause();
    }
    await store.commit({ delete: ids.map(itemKey), set: buried.map((key) => [key, 1]) });
    for (const key of buried) tombstones.add(key);
    index.drop(ids);
    await pause();
    index.tidy();
  }

  /** Forgets tombstones; each batch is no more than a commit takes. */
  async unbury(batches: Iterable<readonly string[]>): Promise<void> {
    for (const keys of batches) {
      await this.#parts.store.commit({ delete: keys });
      this.#parts.tombstones.remove(keys);
      await pause();
    }
  }
}

/** The next id of a `meta/items` record; 1 where there is none that can be read. */
export function nextIdOf(meta: unknown): number {
  const { nextId } = (meta ?? {}) as { nextId?: unknown };
  return Number.isSafeInteger(nextId) && (nextId as number) > 0 ? (nextId as number) : 1;
}

function stepOf(kept: KeptItem): Step {
  const record = encodeItem(kept);
  return { kept, record, bytes: recordBytes(record) };
}

function groupsOf(steps: readonly Step[]): Step[][] {
  const groups: Step[][] = [];
  let group: Step[] = [];
  let bytes = 0;
  for (const step of steps) {
    if (group.length === BATCH_ITEMS || bytes + step.bytes > MAX_COMMIT_BYTES - SPARE_BYTES) {
      groups.push(group);
      group = [];
      bytes = 0;
    }
    group.push(step);
    bytes += step.bytes;
  }
  if (group.length > 0) groups.push(group);
  return groups;
}
