import assert from "node:assert/strict";
import { test } from "node:test";
import type { ByteRange } from "../../src/base/range.ts";
import { pieceCheck } from "../../src/protocol/swarm/piece-check.ts";
import { PieceBufferPool } from "../../src/storage/piece-buffers.ts";
import { PieceMemory } from "../../src/storage/piece-memory.ts";
import { type PieceDisk, PieceStore } from "../../src/storage/piece-store.ts";
import { createByteSource } from "../../src/transfer/byte-source.ts";
import { Demand } from "../../src/transfer/demand.ts";
import { ReadLanes } from "../../src/transfer/read-lanes.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { putPieces, someContent } from "../engine/parts.ts";
import { sha1, sha256 } from "../wire/make-torrent.ts";

const PIECE = 16 * 1024;
const PIECES = 20;

/** A source with memory and optionally a disk. The test plays the swarm and sees the wants. */
function someSource(
  memoryBytes = 64 * PIECE,
  pieceBytes = PIECE,
  diskOf?: (content: Uint8Array) => PieceDisk,
  length = PIECES * PIECE - 100,
) {
  const { file, content } = someContent(length, pieceBytes);
  const pool = new PieceBufferPool(memoryBytes);
  const memory = new PieceMemory(pool, new FakeClock());
  const dropped: number[] = [];
  const store = new PieceStore({
    layout: file.info,
    pool,
    memory,
    disk: diskOf?.(content),
    isRight: pieceCheck(sha1, sha256),
    dropped: (piece) => void dropped.push(piece),
  });
  const wants = new Map<number, ByteRange>();
  const sink = {
    want: (reader: number, range: ByteRange) => void wants.set(reader, range),
    unwant: (reader: number) => void wants.delete(reader),
  };
  const demand = new Demand(store, sink, memoryBytes);
  const stop = new AbortController();
  const lanes = new ReadLanes(demand, new FakeClock(), content.length);
  const source = createByteSource({ demand, offset: 0, size: content.length, stopped: stop.signal, lanes });
  const put = (pieces: Iterable<number>) => putPieces(store, pool, content, pieces);
  return { source, content, wants, put, stop, pool, store, demand, dropped };
}

/** Waits until a new stream has started: it pulls only afterwards. */
const started = () => new Promise((resolve) => setImmediate(resolve));

const ALL = Array.from({ length: PIECES }, (_, piece) => piece);

test("open: fills the buffer of the consumer, across pieces, to the last byte", async () => {
  const { source, content, wants, put } = someSource();
  put(ALL);
  const reader = source.open({ start: 5, end: content.length }).getReader({ mode: "byob" });
  const got: number[] = [];
  let buffer = new ArrayBuffer(10_000);
  for (;;) {
    const { done, value } = await reader.read(new Uint8Array(buffer));
    if (done) break;
    got.push(...value);
    buffer = value.buffer;
  }
  assert.deepEqual(Uint8Array.from(got), content.slice(5));
  assert.equal(wants.size, 0);
});

test("open: a consumer without a buffer gets a new chunk for each read", async () => {
  const { source, content, put } = someSource();
  put(ALL);
  const chunks: Uint8Array[] = [];
  for await (const chunk of source.open({ start: 0, end: 3 * PIECE })) chunks.push(chunk);
  assert.deepEqual(
    chunks.map((chunk) => chunk.length),
    [PIECE, PIECE, PIECE],
  );
  assert.deepEqual(new Uint8Array(Buffer.concat(chunks)), content.slice(0, 3 * PIECE));
});

test("open: an empty range ends at once and wants nothing", async () => {
  const { source, wants } = someSource();
  const { done } = await source.open({ start: 7, end: 7 }).getReader().read();
  assert.equal(done, true);
  assert.equal(wants.size, 0);
});

test("open: waits for a missing piece and wants it meanwhile", async () => {
  const { source, content, wants, put } = someSource();
  const reader = source.open({ start: PIECE, end: 2 * PIECE }).getReader({ mode: "byob" });
  const reading = reader.read(new Uint8Array(100));
  await started();
  assert.deepEqual([...wants.values()], [{ start: PIECE, end: 2 * PIECE }]);
  put([1]);
  const { value } = await reading;
  assert.deepEqual(new Uint8Array(value!), content.slice(PIECE, PIECE + 100));
});

test("open: cancelling a waiting stream ends its wants", async () => {
  const { source, wants } = someSource();
  const reader = source.open({ start: 0, end: PIECE }).getReader({ mode: "byob" });
  const reading = reader.read(new Uint8Array(100));
  await started();
  assert.equal(wants.size, 1);
  await reader.cancel("gone");
  assert.equal((await reading).done, true);
  assert.equal(wants.size, 0);
});

test("reader: close rejects a pending read and all later ones with its reason", async () => {
  const { source, wants } = someSource();
  const reader = source.reader({ start: 0, end: PIECE });
  const waiting = reader.read(new Uint8Array(10));
  reader.close(new Error("enough"));
  await assert.rejects(async () => waiting, /enough/);
  await assert.rejects(async () => reader.read(new Uint8Array(10)), /enough/);
  assert.equal(wants.size, 0);
});

test("reader: the signal and the end of the transfer reject a pending read", async () => {
  const { source, wants, stop } = someSource();
  const abort = new AbortController();
  const one = source.reader({ start: 0, end: PIECE }, { signal: abort.signal }).read(new Uint8Array(10));
  abort.abort(new Error("went away"));
  await assert.rejects(async () => one, /went away/);
  const two = source.reader({ start: 0, end: PIECE }).read(new Uint8Array(10));
  stop.abort(new Error("stopped"));
  await assert.rejects(async () => two, /stopped/);
  assert.equal(wants.size, 0);
});

test("reader: stalled readers at different positions do not starve another one", async () => {
  const { source, content, put, pool, dropped } = someSource(8 * PIECE);
  // Twelve players read their first bytes and stall; the memory of each window cannot be reused while it is wanted.
  for (let place = 0; place < 12; place++) {
    const stalled = source.reader({ start: place * PIECE, end: content.length });
    const reading = stalled.read(new Uint8Array(10));
    put([place]);
    await reading;
  }
  const healthy = source.reader({ start: 12 * PIECE, end: content.length });
  const into = new Uint8Array(PIECE);
  for (let piece = 12; piece < PIECES; piece++) {
    const reading = healthy.read(into);
    put([piece]);
    const length = await reading;
    assert.deepEqual(into.subarray(0, length), content.subarray(piece * PIECE, piece * PIECE + length));
  }
  // Pieces without a reader were dropped; only the guaranteed pieces exceed the memory limit.
  assert.ok(pool.inUseBytes <= content.length);
  assert.ok(dropped.every((piece) => piece >= 0));
});

test("open: a piece on disk is loaded once although memory is full, not for each chunk", async () => {
  const large = 4 * PIECE;
  let loads = 0;
  const { source, content, store, demand } = someSource(PIECE, large, (bytes) => ({
    keeps: true,
    has: () => true,
    save: () => assert.fail("no piece was received"),
    load: async (piece, into) => {
      loads++;
      into.set(bytes.subarray(piece * large, piece * large + into.length));
    },
    forget: () => assert.fail("no piece is damaged"),
  }));
  const reader = source.open({ start: 0, end: content.length }).getReader({ mode: "byob" });
  let length = 0;
  for (let buffer = new ArrayBuffer(PIECE / 4); ; ) {
    const { done, value } = await reader.read(new Uint8Array(buffer));
    if (done) break;
    assert.deepEqual(value, content.subarray(length, length + value.length));
    length += value.length;
    buffer = value.buffer;
  }
  assert.equal(length, content.length);
  assert.equal(loads, store.layout.pieceCount);
  // Pieces on disk need not stay in memory, so the read-ahead does not shrink.
  assert.ok(demand.readAheadLimitBytes > content.length);
});

test("sequence: fills the buffer across pieces, at once if they are in memory, else after a wait", async () => {
  const { source, content, put } = someSource();
  put([0, 1]);
  const reader = source.sequence!();
  const first = new Uint8Array(PIECE + 10);
  assert.equal(reader.read(5, first, 0), undefined);
  assert.deepEqual(first, content.slice(5, PIECE + 15));
  const second = new Uint8Array(2 * PIECE);
  const waiting = reader.read(PIECE + 15, second, 0);
  put([2, 3]);
  await waiting;
  assert.deepEqual(second, content.slice(PIECE + 15, 3 * PIECE + 15));
  reader.close();
});

test("sequence: it has one window, which follows short jumps and ends when it is closed", async () => {
  const { source, wants, put } = someSource();
  put(ALL);
  const reader = source.sequence!();
  for (let i = 0; i < 8; i++) reader.read((i % 2) * 10 * PIECE + i * 100, new Uint8Array(100), 4 * PIECE);
  assert.equal(wants.size, 1);
  const [window] = wants.values();
  assert.deepEqual([window!.start, window!.end], [10 * PIECE + 700, 14 * PIECE + 800]);
  reader.close();
  assert.equal(wants.size, 0);
});

test("sequence: parts far from each other that are read in turns have a window each, until a part is left", async () => {
  const MIB = 1024 * 1024;
  const { source, wants, put } = someSource(64 * MIB, MIB, undefined, 48 * MIB);
  put(Array.from({ length: 48 }, (_, piece) => piece));
  const reader = source.sequence!();
  const read = (position: number) => reader.read(position, new Uint8Array(1000), MIB);
  for (let i = 0; i < 10; i++) read((i % 2) * 20 * MIB + i * 1000);
  assert.deepEqual(
    [...wants.values()].map(({ start }) => Math.floor(start / MIB)),
    [0, 20],
  );
  for (let i = 0; i < 40; i++) read(20 * MIB + i * 1000);
  assert.deepEqual(
    [...wants.values()].map(({ start }) => Math.floor(start / MIB)),
    [20],
  );
  for (let part = 0; part < 12; part++) read(part * 4 * MIB);
  assert.equal(wants.size, 4);
  reader.close();
  assert.equal(wants.size, 0);
});

test("sequence: closing it, and the end of the transfer, reject a read that waits", async () => {
  const { source, stop } = someSource();
  const reader = source.sequence!();
  const closed = reader.read(0, new Uint8Array(10), 0);
  reader.close(new Error("closed"));
  await assert.rejects(closed!, /closed/);
  await assert.rejects(reader.read(0, new Uint8Array(10), 0)!, /closed/);
  const stopped = source.sequence!().read(0, new Uint8Array(10), 0);
  stop.abort(new Error("stopped"));
  await assert.rejects(stopped!, /stopped/);
});
