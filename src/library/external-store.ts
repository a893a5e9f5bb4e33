import * as v from "valibot";
import { SerialQueue } from "../async/serial-queue.ts";
import type { Log } from "../base/log.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import { EXTERNAL_PREFIX, type ExternalRecord, externalKey, readExternalRecord } from "./external-record.ts";

const NEXT_KEY = "meta/external";
const nextSchema = v.object({ next: v.pipe(v.number(), v.safeInteger(), v.minValue(1)) });

/** The records of external playlists, cached in memory. Changes run one after another. */
export interface ExternalStore {
  all(): IterableIterator<ExternalRecord>;
  get(id: number): ExternalRecord | undefined;
  readonly size: number;
  /** Stores a record under a new id. */
  add(record: Omit<ExternalRecord, "id">): Promise<ExternalRecord>;
  /** Changes a record if it exists. */
  change(id: number, changes: Partial<ExternalRecord>): Promise<void>;
  remove(id: number): Promise<void>;
}

/** Reads all records. Logs and skips damaged ones, which stay in the store. */
export async function openExternalStore(store: KeyValueStore, log: Log): Promise<ExternalStore> {
  const records = new Map<number, ExternalRecord>();
  const saved = v.safeParse(nextSchema, await store.get(NEXT_KEY));
  let nextId = saved.success ? saved.output.next : 1;
  for await (const [key, value] of store.list(EXTERNAL_PREFIX)) {
    const record = readExternalRecord(value);
    // Ids of damaged records are not reused either, because their items still refer to them.
    nextId = Math.max(nextId, (record?.id ?? (Number(key.slice(EXTERNAL_PREFIX.length)) || 0)) + 1);
    if (record && externalKey(record.id) === key) records.set(record.id, record);
    else log.error(`the record ${key} cannot be read; this external playlist is ignored`);
  }
  const queue = new SerialQueue();
  return {
    all: () => records.values(),
    get: (id) => records.get(id),
    get size() {
      return records.size;
    },
    add: (fields) =>
      queue.run(async () => {
        const record = { ...fields, id: nextId };
        await store.commit({
          set: [
            [NEXT_KEY, { next: nextId + 1 }],
            [externalKey(record.id), record],
          ],
        });
        nextId++;
        records.set(record.id, record);
        return record;
      }),
    change: (id, changes) =>
      queue.run(async () => {
        const before = records.get(id);
        if (!before) return;
        const record = { ...before, ...changes };
        await store.commit({ set: [[externalKey(id), record]] });
        records.set(id, record);
      }),
    remove: (id) =>
      queue.run(async () => {
        await store.commit({ delete: [externalKey(id)] });
        records.delete(id);
      }),
  };
}
