import { SerialQueue } from "../async/serial-queue.ts";
import { assert } from "../base/assert.ts";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { MAX_COMMIT_BYTES } from "../base/store-limits.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import { yieldToLoop } from "./event-loop.ts";
import type { ItemIndex } from "./item-index.ts";
import { decodeItem, encodeItem, itemKey, recordBytes, type StoredItem } from "./item-record.ts";
import type { Tombstones } from "./item-tombstones.ts";
import { BATCH_ITEMS, MAX_ITEMS } from "./limits.ts";

/** The key of the record with the next id. */
export const META_KEY = "meta/items";

/** Reserved in each commit for the next id and the keys. */
const RESERVED_BYTES = 64 * 1024;

/** The write of one item. */
interface Step {
  readonly kept: StoredItem;
  readonly record: unknown;
  readonly bytes: number;
}

interface ItemWriterDependencies {
  readonly store: KeyValueStore;
  readonly log: Log;
  readonly index: ItemIndex;
  readonly tombstones: Tombstones;
  readonly nextId: number;
  /** The stored record with the next id. */
  readonly savedMeta: unknown;
}

/**
 * Writes records, then the index, so that the index contains only durable changes. Call everything except `read` from
 * within `queue.run`.
 */
export class ItemWriter {
  readonly queue = new SerialQueue();
  readonly #dependencies: ItemWriterDependencies;
  #nextId: number;
  #savedMeta: unknown;
  #hasWarned = false;

  constructor(dependencies: ItemWriterDependencies) {
    this.#dependencies = dependencies;
    this.#nextId = dependencies.nextId;
    this.#savedMeta = dependencies.savedMeta;
  }

  /** Returns an id that was never used. */
  takeId(): number {
    return this.#nextId++;
  }

  /** Throws `too_many` if the playlist has no capacity for `more` items. */
  checkCapacity(more: number): void {
    if (this.#dependencies.index.size + more > MAX_ITEMS)
      throw new SluiceError("too_many", `the playlist is limited to ${MAX_ITEMS} items including the trash`);
  }

  /** Reads an item; returns undefined if it does not exist or is damaged. */
  async read(id: number): Promise<StoredItem | undefined> {
    if (this.#dependencies.index.columns.slotOf(id) === -1) return undefined;
    const value = await this.#dependencies.store.get(itemKey(id));
    if (value === undefined) return undefined;
    const kept = decodeItem(id, value);
    if (kept === undefined && !this.#hasWarned) {
      this.#hasWarned = true;
      this.#dependencies.log.warn("a damaged record of the playlist is ignored", { key: itemKey(id) });
    }
    return kept;
  }

  /** Reads the existing items of these ids, in their order. */
  async readMany(ids: readonly number[]): Promise<StoredItem[]> {
    const all = await Promise.all(ids.map((id) => this.read(id)));
    return all.filter((kept) => kept !== undefined);
  }

  /**
   * Writes items in as few commits as possible, in their order; new ids must be in the order of `takeId`. Commits are
   * atomic: after a failure or crash the first items are written and the others are unchanged.
   */
  async put(items: readonly StoredItem[]): Promise<void> {
    for (const group of groupsOf(items.map(stepOf))) {
      const newest = Math.max(...group.map(({ kept }) => kept.item.id));
      const isNew = newest >= nextIdOf(this.#savedMeta);
      const meta = { nextId: newest + 1 };
      const isDone = await this.#dependencies.store.commit({
        check: isNew ? [[META_KEY, this.#savedMeta]] : [],
        set: [
          ...group.map(({ kept, record }) => [itemKey(kept.item.id), record] as const),
          ...(isNew ? [[META_KEY, meta] as const] : []),
        ],
      });
      assert(isDone, "no other process adds items to this store");
      if (isNew) this.#savedMeta = meta;
      this.#dependencies.index.put(group.map(({ kept }) => kept));
      await yieldToLoop();
    }
  }

  /** Deletes items permanently; tombstones keep their sources from adding them again. At most half a commit's keys. */
  async remove(ids: readonly number[], options: { readonly withTombstones: boolean }): Promise<void> {
    const { store, index, tombstones } = this.#dependencies;
    const tombstoneKeys: string[] = [];
    if (options.withTombstones) {
      for (const { item } of await this.readMany(ids)) {
        const key = tombstones.keyFor(item.externalPlaylistId, item.sourceKey);
        if (key !== undefined) tombstoneKeys.push(key);
      }
      await yieldToLoop();
    }
    await store.commit({ delete: ids.map(itemKey), set: tombstoneKeys.map((key) => [key, 1]) });
    for (const key of tombstoneKeys) tombstones.add(key);
    index.drop(ids);
    await yieldToLoop();
    index.tidy();
  }

  /** Deletes tombstones in batches of a commit. */
  async removeTombstones(batches: Iterable<readonly string[]>): Promise<void> {
    for (const keys of batches) {
      await this.#dependencies.store.commit({ delete: keys });
      this.#dependencies.tombstones.remove(keys);
      await yieldToLoop();
    }
  }
}

/** Decodes the record with the next id; returns 1 if it is missing or damaged. */
export function nextIdOf(meta: unknown): number {
  const { nextId } = (meta ?? {}) as { nextId?: unknown };
  return Number.isSafeInteger(nextId) && (nextId as number) > 0 ? (nextId as number) : 1;
}

function stepOf(kept: StoredItem): Step {
  const record = encodeItem(kept);
  return { kept, record, bytes: recordBytes(record) };
}

function groupsOf(steps: readonly Step[]): Step[][] {
  const groups: Step[][] = [];
  let group: Step[] = [];
  let bytes = 0;
  for (const step of steps) {
    if (group.length === BATCH_ITEMS || bytes + step.bytes > MAX_COMMIT_BYTES - RESERVED_BYTES) {
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
