import * as v from "valibot";
import { changeRecord, type Fence, followRecords, MAX_TRIES } from "../async/records.ts";
import { SerialQueue } from "../async/serial-queue.ts";
import { SluiceError } from "../base/errors.ts";
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
  /** Changes a record if it exists, while the fence holds. */
  change(id: number, changes: Partial<ExternalRecord>, fence?: Fence): Promise<void>;
  remove(id: number): Promise<void>;
  /** Calls `listener` after another engine has changed a record. */
  onChangedElsewhere(listener: () => void): void;
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
  let changed = () => {};
  followRecords(store, EXTERNAL_PREFIX, (key, value) => {
    const record = readExternalRecord(value);
    const id = Number(key.slice(EXTERNAL_PREFIX.length));
    if (record && externalKey(record.id) === key) records.set(id, record);
    else records.delete(id);
    changed();
  });
  return {
    all: () => records.values(),
    get: (id) => records.get(id),
    get size() {
      return records.size;
    },
    add: (fields) =>
      queue.run(async () => {
        for (let tries = 0; tries < MAX_TRIES; tries++) {
          const next = await store.get(NEXT_KEY);
          const saved = v.safeParse(nextSchema, next);
          nextId = Math.max(nextId, saved.success ? saved.output.next : 1);
          const record = { ...fields, id: nextId };
          const key = externalKey(record.id);
          const isDone = await store.commit({
            check: [
              [NEXT_KEY, next],
              [key, undefined],
            ],
            set: [
              [NEXT_KEY, { next: nextId + 1 }],
              [key, record],
            ],
          });
          if (isDone) {
            records.set(record.id, record);
            return record;
          }
        }
        throw new SluiceError("too_many", "other engines add playlists at the same time; try again");
      }),
    change: (id, changes, fence) =>
      queue.run(async () => {
        let record: ExternalRecord | undefined;
        const change = (value: unknown) => {
          const before = readExternalRecord(value);
          record = before && { ...before, ...changes };
          return record;
        };
        await changeRecord(store, externalKey(id), change, fence);
        if (record) records.set(id, record);
        else records.delete(id);
      }),
    remove: (id) =>
      queue.run(async () => {
        await store.commit({ delete: [externalKey(id)] });
        records.delete(id);
      }),
    onChangedElsewhere(listener) {
      changed = listener;
    },
  };
}
