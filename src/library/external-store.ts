import * as v from "valibot";
import type { Log } from "../base/log.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import { EXTERNAL_PREFIX, type ExternalRecord, externalKey, readExternalRecord } from "./external-record.ts";

const NEXT_KEY = "meta/external";
const nextSchema = v.object({ next: v.pipe(v.number(), v.safeInteger(), v.minValue(1)) });

/** The records of external playlists: in memory to be looked at, in the store for good. Changes go one after the other. */
export interface ExternalStore {
  all(): IterableIterator<ExternalRecord>;
  get(id: number): ExternalRecord | undefined;
  readonly size: number;
  /** Keeps a new record under an id that was never used. */
  add(record: Omit<ExternalRecord, "id">): Promise<ExternalRecord>;
  /** Changes what is kept of a record, if it is still there. */
  change(id: number, changes: Partial<ExternalRecord>): Promise<void>;
  remove(id: number): Promise<void>;
}

/** Reads all records. One that cannot be read is told to the log, and left where it is. */
export async function openExternalStore(store: KeyValueStore, log: Log): Promise<ExternalStore> {
  const records = new Map<number, ExternalRecord>();
  const saved = v.safeParse(nextSchema, await store.get(NEXT_KEY));
  let nextId = saved.success ? saved.output.next : 1;
  for await (const [key, value] of store.list(EXTERNAL_PREFIX)) {
    const record = readExternalRecord(value);
    // Even where it cannot be read: its items may still bear its number.
    nextId = Math.max(nextId, (record?.id ?? (Number(key.slice(EXTERNAL_PREFIX.length)) || 0)) + 1);
    if (record && externalKey(record.id) === key) records.set(record.id, record);
    else log.error(`the record ${key} cannot be read: this external playlist is left out`);
  }
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const mine = last.then(work);
    last = mine.catch(() => {}); // Whoever asked for it hears of it; the next change does not depend on it.
    return mine;
  };
  return {
    all: () => records.values(),
    get: (id) => records.get(id),
    get size() {
      return records.size;
    },
    add: (fields) =>
      inTurn(async () => {
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
      inTurn(async () => {
        const before = records.get(id);
        if (!before) return;
        const record = { ...before, ...changes };
        await store.commit({ set: [[externalKey(id), record]] });
        records.set(id, record);
      }),
    remove: (id) =>
      inTurn(async () => {
        await store.commit({ delete: [externalKey(id)] });
        records.delete(id);
      }),
  };
}
