import { createReadStream } from "node:fs";
import { rename } from "node:fs/promises";
import { Breather } from "./breather.ts";
import type { KeyValueStore } from "./contract.ts";
import { files, syncFolder } from "./files.ts";
import { checksumOf } from "./kv-checksum.ts";
import type { StorePaths } from "./kv-paths.ts";
import { inKeyOrder } from "./kv-sqlite-check.ts";
import { DamagedRecord, RecordFile, type StoredRecord } from "./kv-sqlite-file.ts";
import { readText, type TextLine, type TextReport, writeText } from "./kv-text.ts";

const READ_BYTES = 256 * 1024;
const BUSY_MS = 1000;

/**
 * Yields a consistent state of all records as text (`kv-text.ts`), followed by `more`. Reads on a connection of its own
 * while others write. Throws {@link DamagedRecord} for a damaged record.
 */
export async function* snapshotText(
  database: string,
  more: AsyncIterable<TextLine> = none(),
): AsyncGenerator<Uint8Array> {
  const file = new RecordFile(database, { mayCreate: false, busyMs: BUSY_MS });
  try {
    file.run("BEGIN");
    const { sequence } = file.state();
    yield* writeText(sequence, concat(verified(inKeyOrder(file)), more));
    file.run("ROLLBACK");
  } finally {
    file.close();
  }
}

/** Yields the records of any store as text, followed by `more`. Changes made meanwhile may be included. */
export async function* listText(
  store: KeyValueStore,
  more: AsyncIterable<TextLine>,
): AsyncGenerator<Uint8Array> {
  yield* writeText(0, concat(listed(store), more));
}

async function* listed(store: KeyValueStore): AsyncGenerator<StoredRecord> {
  for await (const [key, json] of store.list("")) {
    const value = JSON.stringify(json);
    yield { key, value, checksum: checksumOf(key, value) };
  }
}

/** Writes the snapshot to a temporary file, syncs and renames it. */
export async function writeSnapshot(paths: StorePaths): Promise<void> {
  const temporary = `${paths.snapshot}.new`;
  await files.remove(temporary);
  const file = await files.open(temporary);
  try {
    let at = 0;
    for await (const chunk of snapshotText(paths.database)) {
      await file.write(at, chunk);
      at += chunk.length;
    }
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, paths.snapshot);
  await syncFolder(paths.folder);
}

/** Reads the snapshot and calls `onLine` for each intact line. Returns undefined if there is no snapshot. */
export async function readSnapshot(
  paths: StorePaths,
  onLine: (line: TextLine) => void | Promise<void>,
): Promise<TextReport | undefined> {
  if ((await files.stat(paths.snapshot)) === undefined) return undefined;
  const breather = new Breather();
  return readText(createReadStream(paths.snapshot, { highWaterMark: READ_BYTES }), async (line) => {
    await onLine(line);
    await breather.breathe();
  });
}

async function* verified(records: AsyncIterable<StoredRecord>): AsyncGenerator<StoredRecord> {
  for await (const record of records) {
    if (record.checksum !== checksumOf(record.key, record.value)) throw new DamagedRecord(record.key);
    yield record;
  }
}

async function* concat<T>(first: AsyncIterable<T>, second: AsyncIterable<T>): AsyncGenerator<T> {
  yield* first;
  yield* second;
}

async function* none(): AsyncGenerator<never> {}
