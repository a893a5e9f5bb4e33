import { yieldToLoop } from "../async/event-loop.ts";
import { commitFenced, type Fence, isEqual, MAX_TRIES } from "../async/records.ts";
import { SerialQueue } from "../async/serial-queue.ts";
import { assert } from "../base/assert.ts";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { MAX_COMMIT_BYTES } from "../base/store-limits.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import type { ItemIndex } from "./item-index.ts";
import {
  decodeItem,
  encodeItem,
  ITEM_PREFIX,
  idOfKey,
  itemKey,
  recordBytes,
  type StoredItem,
} from "./item-record.ts";
import { TOMBSTONE_PREFIX, type Tombstones } from "./item-tombstones.ts";
import { BATCH_ITEMS, MAX_ITEMS } from "./limits.ts";

/** The key of the record with the next id. */
export const META_KEY = "meta/items";

/** Reserved in each commit for the next id and the keys. */
const RESERVED_BYTES = 64 * 1024;

/** The write of one item. The record does not contain its id. */
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
  /** Other processes write to the store. */
  readonly #isShared: boolean;
  /** The records, as they were read, that the present work is about to change. */
  readonly #before = new Map<number, unknown>();

  constructor(dependencies: ItemWriterDependencies) {
    this.#dependencies = dependencies;
    this.#isShared = dependencies.store.watch !== undefined;
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

  /**
   * Reads an item; returns undefined if it does not exist or is damaged. `isToChange`, within {@link change} only: `put` and `remove` check that it is
   * still the same.
   */
  async read(id: number, isToChange = false): Promise<StoredItem | undefined> {
    if (this.#dependencies.index.columns.slotOf(id) === -1) return undefined;
    const value = await this.#dependencies.store.get(itemKey(id));
    if (isToChange && this.#isShared) this.#before.set(id, value);
    if (value === undefined) return undefined;
    const kept = decodeItem(id, value);
    if (kept === undefined && !this.#hasWarned) {
      this.#hasWarned = true;
      this.#dependencies.log.warn("a damaged record of the playlist is ignored", { key: itemKey(id) });
    }
    return kept;
  }

  /** Reads the existing items of these ids, in their order. */
  async readMany(ids: readonly number[], isToChange = false): Promise<StoredItem[]> {
    const all = await Promise.all(ids.map((id) => this.read(id, isToChange)));
    return all.filter((kept) => kept !== undefined);
  }

  /**
   * Runs `work` in the queue; again if another engine changed the items meanwhile. It then finds their new versions. Rejects with `too_many` if that
   * happens {@link MAX_TRIES} times, and with `store_unavailable` if the store refuses changes: a change whose fate is not known yet holds the
   * queue until its server is back.
   */
  async change<T>(work: () => Promise<T>): Promise<T> {
    this.#dependencies.store.refuseChanges?.();
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      try {
        return await this.queue.run(() => {
          this.#before.clear();
          return work();
        });
      } catch (error) {
        if (!(error instanceof ChangedElsewhere)) throw error;
      }
    }
    throw new SluiceError("too_many", "other engines change the same items; try again");
  }

  /**
   * Writes items in as few commits as possible, in their order; new ids must be in the order of `takeId`. Commits are
   * atomic: after a failure or crash the first items are written and the others are unchanged. Returns the items as written:
   * new ones have other ids if another engine has used theirs.
   */
  async put(items: readonly StoredItem[], fence?: Fence): Promise<StoredItem[]> {
    const written: StoredItem[] = [];
    const firstNew = nextIdOf(this.#savedMeta);
    for (const group of groupsOf(items.map(stepOf))) {
      const some = await this.#putGroup(group, firstNew, fence);
      this.#dependencies.index.put(some);
      written.push(...some);
      await yieldToLoop();
    }
    return written;
  }

  /** Deletes items permanently; tombstones keep their sources from adding them again. At most half a commit's keys. */
  async remove(
    ids: readonly number[],
    options: { readonly withTombstones: boolean; readonly fence?: Fence | undefined },
  ): Promise<void> {
    const { store, index, tombstones } = this.#dependencies;
    const tombstoneKeys: string[] = [];
    if (options.withTombstones || this.#isShared) {
      for (const { item } of await this.readMany(ids, true)) {
        const key = options.withTombstones && tombstones.keyFor(item.externalPlaylistId, item.sourceKey);
        if (key) tombstoneKeys.push(key);
      }
      await yieldToLoop();
    }
    const change = { delete: ids.map(itemKey), set: tombstoneKeys.map((key) => [key, 1] as const) };
    const isDone = await commitFenced(store, { ...change, check: this.#checksOf(ids) }, options.fence);
    if (!isDone) throw new ChangedElsewhere();
    for (const key of tombstoneKeys) tombstones.add(key);
    index.drop(ids);
    await yieldToLoop();
    index.tidy();
  }

  /** Deletes tombstones in batches of a commit. */
  async removeTombstones(batches: Iterable<readonly string[]>, fence?: Fence): Promise<void> {
    for (const keys of batches) {
      await commitFenced(this.#dependencies.store, { delete: keys }, fence);
      this.#dependencies.tombstones.remove(keys);
      await yieldToLoop();
    }
  }

  /** Applies the changes of other engines to the index. */
  follow(): void {
    const { store, tombstones } = this.#dependencies;
    const follow = (prefix: string, apply: (keys: readonly string[]) => Promise<void>) =>
      // Reads fail only after the store was closed.
      store.watch?.(prefix, (keys) => void this.queue.run(() => apply(keys)).catch(() => {}));
    follow(ITEM_PREFIX, async (keys) => {
      for (let at = 0; at < keys.length; at += BATCH_ITEMS) {
        await this.#reread(keys.slice(at, at + BATCH_ITEMS));
        await yieldToLoop();
      }
    });
    follow(TOMBSTONE_PREFIX, async (keys) => {
      for (const key of keys)
        if ((await store.get(key)) === undefined) tombstones.remove([key]);
        else tombstones.add(key);
    });
    follow(META_KEY, () => this.#rereadMeta());
  }

  async #reread(keys: readonly string[]): Promise<void> {
    const { store, index } = this.#dependencies;
    const found: StoredItem[] = [];
    const gone: number[] = [];
    for (const key of keys) {
      const id = idOfKey(key);
      if (id === undefined) continue;
      const value = await store.get(key);
      const kept = value === undefined ? undefined : decodeItem(id, value);
      if (kept) found.push(kept);
      else gone.push(id);
    }
    index.drop(gone);
    index.put(found.sort((a, b) => a.item.id - b.item.id));
    await yieldToLoop();
    index.tidy();
  }

  async #rereadMeta(): Promise<void> {
    this.#savedMeta = await this.#dependencies.store.get(META_KEY);
    this.#nextId = Math.max(this.#nextId, nextIdOf(this.#savedMeta));
  }

  /** Writes the items of one commit. Those from the id `firstNew` on are new. */
  async #putGroup(
    steps: readonly Step[],
    firstNew: number,
    fence: Fence | undefined,
  ): Promise<readonly StoredItem[]> {
    const { store } = this.#dependencies;
    const isNew = steps.some(({ kept }) => kept.item.id >= firstNew);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      // Another engine may have used the first of these ids, or all.
      const isFree = steps.every(
        ({ kept: { item } }) => item.id < firstNew || item.id >= nextIdOf(this.#savedMeta),
      );
      const group = steps.map(({ kept }) =>
        isFree || kept.item.id < firstNew ? kept : { ...kept, item: { ...kept.item, id: this.takeId() } },
      );
      const meta = { nextId: Math.max(...group.map(({ item }) => item.id)) + 1 };
      const change = {
        check: [
          ...(isNew ? [[META_KEY, this.#savedMeta] as const] : []),
          ...this.#checksOf(group.map(({ item }) => item.id)),
        ],
        set: [
          ...group.map(({ item }, i) => [itemKey(item.id), steps[i]!.record] as const),
          ...(isNew ? [[META_KEY, meta] as const] : []),
        ],
      };
      if (await commitFenced(store, change, fence)) {
        if (isNew) this.#savedMeta = meta;
        return group;
      }
      assert(this.#isShared, "no other process adds items to this store");
      const before = this.#savedMeta;
      await this.#rereadMeta();
      if (!isNew || isEqual(before, this.#savedMeta)) throw new ChangedElsewhere();
    }
    throw new SluiceError("too_many", "other engines add items at the same time; try again");
  }

  #checksOf(ids: readonly number[]): Fence[] {
    return ids.filter((id) => this.#before.has(id)).map((id) => [itemKey(id), this.#before.get(id)]);
  }
}

/** Another engine has changed the items since they were read. */
class ChangedElsewhere extends Error {}

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
