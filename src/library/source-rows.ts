import * as v from "valibot";
import type { YieldIfDue } from "../async/event-loop.ts";
import { commitFenced, type Fence } from "../async/records.ts";
import type { Log } from "../base/log.ts";
import { MAX_COMMIT_KEYS } from "../base/store-limits.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import type { EntryFingerprints } from "./refresh-match.ts";

/** An entry of an external playlist at the last refresh. */
export interface SourceRow extends EntryFingerprints {
  /** The permanent key of its item (`Item.sourceKey` as text): 1, 2, 3 … */
  readonly key: number;
  /** The day (since 1970) of the first refresh without the entry; 0 while the list has it. */
  readonly goneSince: number;
}

/** The entries of external playlists, in records of up to 800 rows: `source/<playlist>/<key / 800>`. */
export interface SourceRows {
  /** Loads the rows in the order of their keys. A damaged record counts as missing. */
  load(playlistId: number): Promise<SourceRow[]>;
  /** Replaces the rows `before` by `rows`, both in the order of their keys. Writes only records that change. */
  save(
    playlistId: number,
    before: readonly SourceRow[],
    rows: readonly SourceRow[],
    fence?: Fence,
  ): Promise<void>;
  /** Deletes all rows of a playlist. */
  clear(playlistId: number): Promise<void>;
}

/** A row has at most 16 digits per fingerprint, 10 per key and 6 per day: 800 rows stay below the 60 KiB of a record. */
const ROWS_PER_RECORD = 800;
const RECORDS_PER_COMMIT = 8;
const COLUMNS = 5;

/** One check for the whole record: a schema per number would leave 24 MB of garbage for half a million numbers. */
const recordSchema = v.custom<number[]>(isRecord, `expected rows of ${COLUMNS} numbers`);

/** Creates the rows in a store. */
export function createSourceRows(store: KeyValueStore, log: Log, yieldIfDue: YieldIfDue): SourceRows {
  const removeAll = async (keys: readonly string[]) => {
    for (let at = 0; at < keys.length; at += MAX_COMMIT_KEYS)
      await store.commit({ delete: keys.slice(at, at + MAX_COMMIT_KEYS) });
  };
  return {
    async load(playlistId) {
      const rows: SourceRow[] = [];
      for await (const [key, value] of store.list(prefixOf(playlistId))) {
        await yieldIfDue();
        const parsed = v.safeParse(recordSchema, value);
        if (parsed.success) readRows(parsed.output, rows);
        else log.error(`the record ${key} cannot be read; its items will be added again`);
      }
      return rows;
    },
    async save(playlistId, before, rows, fence) {
      const old = recordsOf(before);
      await yieldIfDue();
      const now = recordsOf(rows);
      await yieldIfDue();
      const set = [...now].filter(([record, numbers]) => !isSame(numbers, old.get(record)));
      const gone = [...old.keys()].filter((record) => !now.has(record));
      const name = (record: number) => `${prefixOf(playlistId)}${String(record).padStart(8, "0")}`;
      for (let at = 0; at < set.length; at += RECORDS_PER_COMMIT) {
        await yieldIfDue();
        const some = set.slice(at, at + RECORDS_PER_COMMIT);
        const written = some.map(([record, numbers]) => [name(record), numbers] as const);
        await commitFenced(store, { set: written }, fence);
      }
      await removeAll(gone.map(name));
    },
    async clear(playlistId) {
      const keys: string[] = [];
      for await (const [key] of store.list(prefixOf(playlistId))) keys.push(key);
      await removeAll(keys);
    },
  };
}

function prefixOf(playlistId: number): string {
  return `source/${String(playlistId).padStart(10, "0")}/`;
}

function isRecord(value: unknown): boolean {
  if (!Array.isArray(value) || value.length % COLUMNS !== 0) return false;
  return value.length <= ROWS_PER_RECORD * COLUMNS && value.every(isCount);
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function readRows(numbers: readonly number[], into: SourceRow[]): void {
  for (let at = 0; at < numbers.length; at += COLUMNS) {
    const key = numbers[at]!;
    const [link, name, guide] = [numbers[at + 1]!, numbers[at + 2]!, numbers[at + 3]!];
    into.push({ key, link, name, guide, goneSince: numbers[at + 4]! });
  }
}

/** Groups rows by record. The key determines the record, so that a removed row does not move others. */
function recordsOf(rows: readonly SourceRow[]): Map<number, number[]> {
  const records = new Map<number, number[]>();
  for (const { key, link, name, guide, goneSince } of rows) {
    const record = Math.floor(key / ROWS_PER_RECORD);
    const numbers = records.get(record) ?? [];
    numbers.push(key, link, name, guide, goneSince);
    records.set(record, numbers);
  }
  return records;
}

function isSame(a: readonly number[], b: readonly number[] | undefined): boolean {
  return a.length === b?.length && a.every((number, i) => number === b[i]);
}
