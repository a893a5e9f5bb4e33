import assert from "node:assert/strict";
import { test } from "node:test";
import { deferred } from "../../src/async/deferred.ts";
import { BufferPool } from "../../src/base/buffer-pool.ts";
import type { RandomAccess, SequentialReader } from "../../src/base/byte-source.ts";
import { type PlannedRange, pieceStream, streamBytes } from "../../src/remux/piece-stream.ts";
import { connect, Remuxer } from "../../src/remux/remuxer.ts";

const KIB = 1024;
const FILE_BYTES = 64 * 1024 * KIB;

/** A file whose reads the test counts. `wait`: what each read waits for; `for ever` until it is closed. */
function someFile(wait: () => Promise<void> | "for ever" | undefined = () => undefined) {
  const seen = { bytes: 0, reads: [] as number[], closed: [] as unknown[], open: 0 };
  const sequence = (): SequentialReader => {
    seen.open++;
    const closing = deferred();
    closing.promise.catch(() => {});
    return {
      read(position, into) {
        seen.bytes += into.length;
        seen.reads.push(into.length);
        for (let i = 0; i < into.length; i += KIB) into[i] = (position + i) / KIB;
        const waiting = wait();
        return waiting === "for ever" ? closing.promise : waiting;
      },
      close: (reason) => {
        seen.open--;
        seen.closed.push(reason);
        closing.reject(reason);
      },
    };
  };
  const source: RandomAccess = { size: FILE_BYTES, read: () => assert.fail("not sequential"), sequence };
  return { source, seen, closing: new AbortController() };
}

const WHOLE: PlannedRange = { start: 0, end: FILE_BYTES, until: FILE_BYTES };

function stream({ source, closing }: ReturnType<typeof someFile>, ranges: PlannedRange[] = [WHOLE]) {
  return pieceStream({ source, ranges: () => ranges, closed: closing.signal });
}

/** A stage that passes its input on as a copy. */
function copying(): Remuxer<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  return new Remuxer({ transform: (bytes) => [bytes.slice()] });
}

/** Lets all streams do what they can do without another read. */
async function quiet(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}

test("pieceStream: reads the ranges in order, in chunks of 256 KiB that cross no end of a range", async () => {
  const file = someFile();
  const ranges = [
    { start: 512 * KIB, end: 1100 * KIB, until: FILE_BYTES },
    { start: 10 * KIB, end: 90 * KIB, until: FILE_BYTES },
  ];
  const bytes = await streamBytes(stream(file, ranges));
  assert.deepEqual(
    file.seen.reads.map((length) => length / KIB),
    [256, 256, 76, 80],
  );
  assert.equal(bytes[0], ((512 * KIB) / KIB) % 256);
  assert.equal(bytes[588 * KIB], 10);
  assert.equal(file.seen.open, 0);
});

test("pieceStream: chunks hold whole packets if the range states their distance", async () => {
  const file = someFile();
  const end = 3000 * 188;
  await streamBytes(stream(file, [{ start: 0, end, until: end, unitBytes: 188 }]));
  assert.deepEqual(file.seen.reads, [1394 * 188, 1394 * 188, 212 * 188]);
});

test("streamBytes: what it returns keeps no buffer of the pool", async () => {
  const pool = new BufferPool();
  const chunk = pool.take(70 * KIB);
  const chunks = new ReadableStream<typeof chunk>({
    start(controller) {
      controller.enqueue(chunk);
      controller.close();
    },
  });
  const bytes = await streamBytes(chunks, pool);
  assert.deepEqual([bytes.length, bytes.buffer.byteLength], [70 * KIB, 70 * KIB]);
  assert.equal(pool.take(70 * KIB).buffer, chunk.buffer);
});

test("pieceStream: a source without sequential reads is read at positions", async () => {
  const content = Uint8Array.from({ length: 600 * KIB }, (_, i) => i >> 8);
  const source: RandomAccess = {
    size: content.length,
    read: async ({ start, end }) => content.slice(start, end),
  };
  const ranges = () => [{ start: 0, end: content.length, until: content.length }];
  assert.deepEqual(
    await streamBytes(pieceStream({ source, ranges, closed: new AbortController().signal })),
    content,
  );
});

test("pieceStream: cancelling the output of remuxers ends the read in progress at the source", async () => {
  const file = someFile(() => "for ever");
  const reader = stream(file).pipeThrough(connect(copying(), copying())).getReader();
  const read = reader.read();
  await quiet();
  assert.equal(file.seen.reads.length, 1);
  await reader.cancel("the player has left");
  assert.equal((await read).done, true);
  assert.deepEqual(file.seen.closed, ["the player has left"]);
});

test("pieceStream: the signal of the request and the closing of the file end a read", async () => {
  for (const part of ["signal", "closed"] as const) {
    const file = someFile(() => "for ever");
    const abort = new AbortController();
    const pieces = pieceStream(
      {
        source: file.source,
        ranges: () => [WHOLE],
        closed: part === "closed" ? abort.signal : file.closing.signal,
      },
      part === "signal" ? { signal: abort.signal } : {},
    );
    const read = pieces.pipeThrough(copying()).getReader().read();
    await quiet();
    abort.abort(new Error("over"));
    await assert.rejects(read, /over/);
    assert.equal(file.seen.open, 0);
  }
});

test("pieceStream: an error of the source, of the plan, and of a stage reaches the player and ends the reads", async () => {
  const failing = someFile(() => Promise.reject(new Error("no peers")));
  await assert.rejects(streamBytes(stream(failing).pipeThrough(copying())), /no peers/);
  assert.equal(failing.seen.open, 0);

  const unplanned = someFile();
  const ranges = async function* () {
    yield { start: 0, end: KIB, until: KIB };
    throw new Error("no index");
  };
  const pieces = pieceStream({ source: unplanned.source, ranges, closed: unplanned.closing.signal });
  await assert.rejects(streamBytes(pieces.pipeThrough(copying())), /no index/);
  assert.equal(unplanned.seen.open, 0);

  const broken = someFile();
  const stage = new Remuxer<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform() {
      throw new RangeError("invalid frame");
    },
  });
  await assert.rejects(streamBytes(stream(broken).pipeThrough(stage)), { code: "broken_media" });
  await quiet();
  assert.equal(broken.seen.open, 0);
});

test("Remuxer: isDone ends the output and the reads of the source", async () => {
  const file = someFile();
  let bytes = 0;
  const stage = new Remuxer<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(input) {
      bytes += input.length;
      return [input];
    },
    isDone: () => bytes >= 512 * KIB,
    flush: () => [new Uint8Array(1)],
  });
  assert.equal((await streamBytes(stream(file).pipeThrough(stage))).length, 512 * KIB + 1);
  await quiet();
  assert.equal(file.seen.open, 0);
  assert.ok(file.seen.bytes <= 1024 * KIB, `read ${file.seen.bytes} bytes`);
});

test("pieceStream: fifty players that stop reading hold a few chunks each", async () => {
  const file = someFile();
  const readers = Array.from({ length: 50 }, () =>
    stream(file).pipeThrough(copying()).pipeThrough(copying()).getReader(),
  );
  for (const reader of readers) assert.equal((await reader.read()).done, false);
  await quiet();
  // One chunk at the player, one in each stage, and one that waits in front of each stage.
  assert.ok(file.seen.bytes <= 50 * 5 * 256 * KIB, `read ${file.seen.bytes} bytes`);
  const before = file.seen.bytes;
  await quiet();
  assert.equal(file.seen.bytes, before);
  for (const reader of readers) await reader.cancel();
  await quiet();
  assert.equal(file.seen.open, 0);
});

test("pieceStream: nothing is read before the player waits for data", async () => {
  const file = someFile();
  const { promise, resolve } = deferred();
  const pieces = pieceStream(
    { source: file.source, ranges: () => [WHOLE], closed: file.closing.signal },
    { ready: () => promise },
  );
  const reader = pieces.pipeThrough(copying()).getReader();
  await quiet();
  assert.equal(file.seen.bytes, 0);
  resolve();
  assert.equal((await reader.read()).value?.length, 256 * KIB);
  await reader.cancel();
});

test("pieceStream: only waits for bytes are limited in time, not bytes that are in memory", async () => {
  let waits = 0;
  const wait = <T>(work: () => Promise<T>) => {
    waits++;
    return work();
  };
  let reads = 0;
  const file = someFile(() => (reads++ % 4 === 3 ? Promise.resolve() : undefined));
  const planned = {
    source: file.source,
    ranges: () => [{ ...WHOLE, end: 2048 * KIB }],
    closed: file.closing.signal,
  };
  await streamBytes(pieceStream(planned, { wait }));
  assert.deepEqual([reads, waits], [8, 2]);
});
