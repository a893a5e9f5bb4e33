import { Breather } from "./breather.ts";
import { checksumOf } from "./kv-checksum.ts";
import type { RecordFile, StoredRecord } from "./kv-sqlite-file.ts";

/** Rows that are asked for at once; where one of them cannot be read, each is asked for alone. */
const BATCH_ROWS = 64;
/** The start of the engine waits for it: what cannot be read in this time is left to the snapshot. */
const LONGEST_MS = 2000;
const COLUMNS = "SELECT rowid, key, value, checksum FROM record WHERE";

/**
 * The records of a damaged file that can be read and are as they were written, in no order. Reads the table row by row,
 * past what cannot be read, and without the index on keys, which may be damaged itself.
 */
export async function* wholeRecords(file: RecordFile): AsyncGenerator<StoredRecord> {
  const breather = new Breather();
  const endMs = performance.now() + LONGEST_MS;
  const last = lastRow(file);
  for (let row = 0; row < last && performance.now() < endMs; row += BATCH_ROWS) {
    for (const record of rowsAfter(file, row)) if (isWhole(record)) yield record;
    await breather.breathe();
  }
}

function rowsAfter(file: RecordFile, row: number): StoredRecord[] {
  const all = readable(file, `${COLUMNS} rowid > ? AND rowid <= ?`, row, row + BATCH_ROWS);
  if (all !== undefined) return all;
  return Array.from({ length: BATCH_ROWS }, (_, i) => row + 1 + i).flatMap(
    (one) => readable(file, `${COLUMNS} rowid = ?`, one) ?? [],
  );
}

function readable(file: RecordFile, sql: string, ...rows: number[]): StoredRecord[] | undefined {
  try {
    return file.rows(sql, ...rows) as unknown as StoredRecord[];
  } catch {
    return undefined; // Damaged: that is what this is for.
  }
}

/** The number of the last row, or more than there can be where even that cannot be read. */
function lastRow(file: RecordFile): number {
  try {
    return Number(file.rows("SELECT max(rowid) AS last FROM record")[0]?.last ?? 0);
  } catch {
    return 10_000_000;
  }
}

function isWhole({ key, value, checksum }: StoredRecord): boolean {
  return typeof key === "string" && typeof value === "string" && checksum === checksumOf(key, value);
}
