import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { deferred } from "../../src/async/deferred.ts";
import { ARCHIVE_MS, PieceArchive, type Records } from "../../src/web/page/viewer/piece-archive.ts";
import { NotingSink, PieceMaker, type SomeStream, someStream } from "../live/driver-parts.ts";

/** Records in memory. They outlive an archive, as those in IndexedDB outlive a page. */
class FakeRecords implements Records {
  readonly values = new Map<string, unknown>();
  isFull = false;

  keys(): Promise<readonly string[]> {
    return Promise.resolve([...this.values.keys()]);
  }

  get(keys: readonly string[]): Promise<readonly unknown[]> {
    return Promise.resolve(keys.map((key) => structuredClone(this.values.get(key))));
  }

  set(key: string, value: unknown): Promise<void> {
    if (this.isFull) return Promise.reject(new Error("QuotaExceededError"));
    this.values.set(key, structuredClone(value));
    return Promise.resolve();
  }

  remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.values.delete(key);
    return Promise.resolve();
  }
}

const NOTHING = Promise.resolve([]);
const START_MS = 1_790_000_000_000;
const PIECE_MS = 250;

/** The clock and the stores of a browser that opens pages of `stream`. */
function browserOf(stream: SomeStream) {
  const records = new FakeRecords();
  const clock = { nowMs: START_MS };
  const maker = new PieceMaker(stream);
  let pages = 0;
  const open = () => {
    const sink = new NotingSink();
    const archive = new PieceArchive({
      ...{ file: stream.file, records, next: sink, sha256: runtime.sha256 },
      verify: runtime.ed25519Verifier(stream.file.info.publicKey),
      now: () => clock.nowMs,
      pageId: `page${pages++}`,
      newestCount: 10,
    });
    /** Receives pieces with these first bytes, one in 250 ms. */
    const receive = async (numbers: readonly number[]) => {
      for (const number of numbers) {
        const { header, chunks } = maker.make(new Uint8Array(188 * 9).fill(number), clock.nowMs);
        archive.piece(header.value, chunks, header.bytes);
        clock.nowMs += PIECE_MS;
      }
      await archive.settled();
    };
    return { archive, sink, receive };
  };
  return { records, clock, open };
}

const numbersOf = ({ pieces }: NotingSink) => pieces.map(({ bytes }) => bytes[0]);

test("PieceArchive: a page that is reloaded gets the pieces of the one before, in order", async () => {
  const stream = someStream();
  const { open } = browserOf(stream);
  const first = open();
  await first.receive([1, 2, 3, 4, 5, 6]);
  assert.deepEqual(numbersOf(first.sink), [1, 2, 3, 4, 5, 6]);
  const second = open();
  const restored = await second.archive.restore(NOTHING);
  assert.deepEqual(numbersOf(second.sink), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(
    restored.map(({ header, chunks }) => [header.value.seq, Buffer.concat([...chunks])[0]]),
    [1, 2, 3, 4, 5, 6].map((number) => [99 + number, number]),
  );
  await second.receive([7, 8]);
  const third = open();
  await third.archive.restore(NOTHING);
  assert.deepEqual(numbersOf(third.sink), [1, 2, 3, 4, 5, 6, 7, 8]);
});

test("PieceArchive: pieces of other streams, invalid and changed ones are not restored", async () => {
  const stream = someStream();
  const { records, open } = browserOf(stream);
  await open().receive([1, 2, 3, 4, 5, 6]);
  const [first, second, third] = [...records.values.values()] as {
    header: Uint8Array;
    media: Uint8Array;
  }[][];
  first![1]!.media[200]! ^= 1;
  second![1]!.header[30]! ^= 1;
  third!.push({ header: new Uint8Array(3), media: new Uint8Array(3) });
  records.values.set(`${stream.file.infohash} ${START_MS} x 0`, "nothing");
  const page = open();
  await page.archive.restore(NOTHING);
  assert.deepEqual(numbersOf(page.sink), [1, 3, 5, 6]);
  const other = browserOf(someStream({ name: "Other" }));
  for (const [key, value] of records.values) other.records.values.set(key, value);
  const otherPage = other.open();
  assert.deepEqual(await otherPage.archive.restore(NOTHING), []);
});

test("PieceArchive: removes what is older than two minutes, of this stream and of others", async () => {
  const { records, clock, open } = browserOf(someStream());
  records.values.set(`${"ab".repeat(20)} ${START_MS - ARCHIVE_MS - 1} x 0`, []);
  records.values.set(`${"ab".repeat(20)} ${START_MS - 1} x 0`, []);
  const page = open();
  await page.archive.restore(NOTHING);
  assert.equal(records.values.size, 1);
  const pieces = ARCHIVE_MS / PIECE_MS;
  await page.receive(Array.from({ length: 2 * pieces }, (_, i) => i % 256));
  // Two pieces are written at once; some outdated ones wait for their removal.
  assert.ok(records.values.size < pieces / 2 + 30, `${records.values.size} records`);
  clock.nowMs += ARCHIVE_MS + 1;
  assert.deepEqual(await open().archive.restore(NOTHING), []);
  assert.equal(records.values.size, 0);
});

test("PieceArchive: if the browser has no space, it stores nothing more and removes its records; playback continues", async () => {
  const { records, open } = browserOf(someStream());
  const page = open();
  await page.receive([1, 2, 3, 4]);
  records.isFull = true;
  await page.receive([5, 6]);
  assert.equal(records.values.size, 0);
  await page.receive([7]);
  assert.deepEqual(numbersOf(page.sink), [1, 2, 3, 4, 5, 6, 7]);
});

test("PieceArchive: records that were written while the browser read the old ones are removed with them", async () => {
  const { records, open } = browserOf(someStream());
  await open().receive([1, 2, 3, 4]);
  const { archive, receive } = open();
  const { keys } = records;
  const reading = deferred();
  records.keys = async () => {
    const names = await keys.call(records);
    await reading.promise;
    return names;
  };
  const restoring = archive.restore(NOTHING);
  await receive([5, 6, 7, 8]);
  reading.resolve();
  await restoring;
  records.isFull = true;
  await receive([9, 10]);
  assert.deepEqual([...records.values.keys()], []);
});
