import { createReadStream } from "node:fs";
import { rename } from "node:fs/promises";
import { Breather } from "./breather.ts";
import type { KeyValueStore } from "./contract.ts";
import { files, syncFolder } from "./files.ts";
import { checksumOf } from "./kv-checksum.ts";
import type { Places } from "./kv-places.ts";
import { inKeyOrder } from "./kv-sqlite-check.ts";
import { DamagedRecord, RecordFile, type StoredRecord } from "./kv-sqlite-file.ts";
import { readText, type TextLine, type TextReport, writeText } from "./kv-text.ts";

const READ_BYTES = 256 * 1024;
const BUSY_MS = 1000;

/**
 * All records as one moment had them, as text (`kv-text.ts`), read on a connection of its own beside whoever writes.
 * Throws rather than write down a record that is damaged. `more` follows the records.
 */
export async function* momentText(
  database: string,
  more: AsyncIterable<TextLine> = none(),
): AsyncGenerator<Uint8Array> {
  const file = new RecordFile(database, { mayCreate: false, busyMs: BUSY_MS });
  try {
    file.run("BEGIN");
    const { sequence } = file.state();
    yield* writeText(sequence, both(whole(inKeyOrder(file)), more));
    file.run("ROLLBACK");
  } finally {
    file.close();
  }
}

/** The records of any other store as text, one after another while it may change. */
export async function* listText(
  store: KeyValueStore,
  more: AsyncIterable<TextLine>,
): AsyncGenerator<Uint8Array> {
  yield* writeText(0, both(listed(store), more));
}

async function* listed(store: KeyValueStore): AsyncGenerator<StoredRecord> {
  for await (const [key, json] of store.list("")) {
    const value = JSON.stringify(json);
    yield { key, value, checksum: checksumOf(key, value) };
  }
}

/** Writes the snapshot beside, syncs, renames, syncs the folder. */
export async function writeSnapshot(places: Places): Promise<void> {
  const beside = `${places.snapshot}.new`;
  await files.remove(beside);
  const file = await files.open(beside);
  try {
    let at = 0;
    for await (const chunk of momentText(places.database)) {
      await file.write(at, chunk);
      at += chunk.length;
    }
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(beside, places.snapshot);
  await syncFolder(places.folder);
}

/** Reads the snapshot; undefined where there is none. */
export async function readSnapshot(
  places: Places,
  found: (line: TextLine) => void | Promise<void>,
): Promise<TextReport | undefined> {
  if ((await files.stat(places.snapshot)) === undefined) return undefined;
  const breather = new Breather();
  return readText(createReadStream(places.snapshot, { highWaterMark: READ_BYTES }), async (line) => {
    await found(line);
    await breather.breathe();
  });
}

async function* whole(records: AsyncIterable<StoredRecord>): AsyncGenerator<StoredRecord> {
  for await (const record of records) {
    if (record.checksum !== checksumOf(record.key, record.value)) {
      throw new DamagedRecord(`${record.key} is damaged on disk; start the engine again, and it is repaired`);
    }
    yield record;
  }
}

async function* both<T>(first: AsyncIterable<T>, second: AsyncIterable<T>): AsyncGenerator<T> {
  yield* first;
  yield* second;
}

async function* none(): AsyncGenerator<never> {}
