import * as v from "valibot";
import type { Log } from "../base/log.ts";
import { MAX_COMMIT_KEYS } from "../base/store-limits.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import type { Breathe } from "./breathe.ts";
import type { EntryMarks } from "./refresh-match.ts";

/** One entry of an external playlist, as it was when the list was last read. */
export interface SourceRow extends EntryMarks {
  /** What its item is known by, whatever becomes of link and title (`Item.sourceKey`, as text): 1, 2, 3 … */
  readonly key: number;
  /** The day (since 1970) on which the list was first without it; 0 where it has it. */
  readonly goneSince: number;
}

/** Which entries an external playlist had, in records of some hundred rows each: `source/<playlist>/<keys / 800>`. */
export interface SourceRows {
  /** In the order of their keys. A record that cannot be read counts as absent. */
  load(playlistId: number): Promise<SourceRow[]>;
  /** Makes `rows`, in the order of their keys, what is kept. A record that stays as it is costs no write. */
  save(playlistId: number, before: readonly SourceRow[], rows: readonly SourceRow[]): Promise<void>;
  /** Forgets all rows of a playlist. */
  clear(playlistId: number): Promise<void>;
}

/** A row takes at most 16 digits a mark, 10 a key, 6 a day, and commas: 800 of them stay below the 60 KiB of a record. */
const ROWS_PER_RECORD = 800;
const RECORDS_PER_COMMIT = 8;
const COLUMNS = 5;

/** Looked at in one go: a schema for each of half a million numbers leaves 24 MB of garbage. */
const recordSchema = v.custom<number[]>(isRecord, `expected rows of ${COLUMNS} numbers`);

/** The rows in a store. */
export function createSourceRows(store: KeyValueStore, log: Log, breathe: Breathe): SourceRows {
  const removeAll = async (keys: readonly string[]) => {
    for (let at = 0; at < keys.length; at += MAX_COMMIT_KEYS)
      await store.commit({ delete: keys.slice(at, at + MAX_COMMIT_KEYS) });
  };
  return {
    async load(playlistId) {
      const rows: SourceRow[] = [];
      for await (const [key, value] of store.list(prefixOf(playlistId))) {
        await breathe();
        const parsed = v.safeParse(recordSchema, value);
        if (parsed.success) readRows(parsed.output, rows);
        else log.error(`the record ${key} cannot be read; its items are taken for new ones`);
      }
      return rows;
    },
    async save(playlistId, before, rows) {
      const old = recordsOf(before);
      await breathe();
      const now = recordsOf(rows);
      await breathe();
      const set = [...now].filter(([record, numbers]) => !isSame(numbers, old.get(record)));
      const gone = [...old.keys()].filter((record) => !now.has(record));
      const name = (record: number) => `${prefixOf(playlistId)}${String(record).padStart(8, "0")}`;
      for (let at = 0; at < set.length; at += RECORDS_PER_COMMIT) {
        await breathe();
        const some = set.slice(at, at + RECORDS_PER_COMMIT);
        await store.commit({ set: some.map(([record, numbers]) => [name(record), numbers] as const) });
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

/** The rows by the number of their record. A row's place follows from its key, so that one that goes moves no other. */
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
