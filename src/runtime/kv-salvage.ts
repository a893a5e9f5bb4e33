import { Breather } from "./breather.ts";
import { checksumOf } from "./kv-checksum.ts";
import type { RecordFile, StoredRecord } from "./kv-sqlite-file.ts";

/** Rows of one query; if one of them cannot be read, each row gets its own query. */
const BATCH_ROWS = 64;
/** The engine waits for this when it starts; rows not read within this time come from the snapshot. */
const MAX_READ_MS = 2000;
const COLUMNS = "SELECT rowid, key, value, checksum FROM record WHERE";

/**
 * Yields the intact records of a damaged file, in no order. Reads the table row by row and skips unreadable rows. Does
 * not use the index on keys, which may be damaged too.
 */
export async function* intactRecords(file: RecordFile): AsyncGenerator<StoredRecord> {
  const breather = new Breather();
  const endMs = performance.now() + MAX_READ_MS;
  const last = lastRow(file);
  for (let row = 0; row < last && performance.now() < endMs; row += BATCH_ROWS) {
    for (const record of rowsAfter(file, row)) if (isIntact(record)) yield record;
    await breather.breathe();
  }
}

function rowsAfter(file: RecordFile, row: number): StoredRecord[] {
  const all = readableRows(file, `${COLUMNS} rowid > ? AND rowid <= ?`, row, row + BATCH_ROWS);
  if (all !== undefined) return all;
  return Array.from({ length: BATCH_ROWS }, (_, i) => row + 1 + i).flatMap(
    (single) => readableRows(file, `${COLUMNS} rowid = ?`, single) ?? [],
  );
}

/** Returns undefined if the rows cannot be read. */
function readableRows(file: RecordFile, sql: string, ...rows: number[]): StoredRecord[] | undefined {
  try {
    return file.rows(sql, ...rows) as unknown as StoredRecord[];
  } catch {
    return undefined;
  }
}

/** Returns the id of the last row, or more than any store has if it cannot be read. */
function lastRow(file: RecordFile): number {
  try {
    return Number(file.rows("SELECT max(rowid) AS last FROM record")[0]?.last ?? 0);
  } catch {
    return 10_000_000;
  }
}

function isIntact({ key, value, checksum }: StoredRecord): boolean {
  return typeof key === "string" && typeof value === "string" && checksum === checksumOf(key, value);
}
