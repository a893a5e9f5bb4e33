import { yieldToLoop } from "../async/event-loop.ts";
import type { Sha1 } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import { TextHash } from "./item-hash.ts";
import { ItemIndex } from "./item-index.ts";
import { decodeItem, ITEM_PREFIX, idOfKey, type StoredItem } from "./item-record.ts";
import { TOMBSTONE_PREFIX, Tombstones } from "./item-tombstones.ts";
import { ItemWriter, META_KEY, nextIdOf } from "./item-writer.ts";
import { BATCH_ITEMS } from "./limits.ts";

interface ItemStorage {
  readonly index: ItemIndex;
  readonly tombstones: Tombstones;
  readonly writer: ItemWriter;
}

/** Reads all records; yields to the event loop between batches. */
export async function openItemStorage(dependencies: {
  readonly store: KeyValueStore;
  readonly log: Log;
  readonly sha1: Sha1;
}): Promise<ItemStorage> {
  const { store, log, sha1 } = dependencies;
  const index = new ItemIndex(sha1, new TextHash(randomWord(), randomWord()));
  const tombstones = new Tombstones(sha1, log);
  const highest = await loadItems(store, index, log);
  for await (const [key] of store.list(TOMBSTONE_PREFIX)) tombstones.add(key);
  const savedMeta = await store.get(META_KEY);
  // If the record of the next id is lost, ids continue after the highest existing one.
  const nextId = Math.max(nextIdOf(savedMeta), highest + 1);
  const writer = new ItemWriter({ store, log, index, tombstones, nextId, savedMeta });
  return { index, tombstones, writer };
}

/** Loads the items into the index; returns the highest id, including those of damaged records. */
async function loadItems(store: KeyValueStore, index: ItemIndex, log: Log): Promise<number> {
  let highest = 0;
  let damaged = 0;
  let firstDamaged: string | undefined;
  let batch: StoredItem[] = [];
  for await (const [key, value] of store.list(ITEM_PREFIX)) {
    const id = idOfKey(key);
    const kept = id === undefined ? undefined : decodeItem(id, value);
    if (id !== undefined) highest = id;
    if (kept === undefined) {
      damaged++;
      firstDamaged ??= key;
      continue;
    }
    batch.push(kept);
    if (batch.length < BATCH_ITEMS) continue;
    index.put(batch);
    batch = [];
    await yieldToLoop();
  }
  index.put(batch);
  if (damaged > 0) log.warn("damaged records of the playlist are ignored", { damaged, first: firstDamaged });
  return highest;
}

function randomWord(): number {
  return Math.floor(Math.random() * 2 ** 32);
}
