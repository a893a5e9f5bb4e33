import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import { pidAt } from "../../src/media/ts-packet.ts";
import { settled } from "../engine/fake-clock.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { scratchFile } from "../remux/make-media.ts";
import { ffmpegErrors, probePackets } from "../remux/probe.ts";
import { checkTs } from "../remux/ts-checker.ts";
import {
  drained,
  give,
  inFolder,
  laterRound,
  patternStream,
  type StreamPiece,
  someWindow,
  taken,
  written,
} from "./window-stream.ts";

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");

const WITH = { timeout: 60_000 };
const never = new AbortController().signal;
const bytesOf = (pieces: readonly StreamPiece[]) => concatBytes(pieces.map(({ bytes }) => bytes));

/** The stream from the random access point in piece `index`. */
function from(pieces: readonly StreamPiece[], index: number): Uint8Array {
  return bytesOf(pieces.slice(index)).subarray(pieces[index]!.header.randomAccessOffset);
}

/** The last piece with a random access point at or before `timeMs`. */
function entryBefore(pieces: readonly StreamPiece[], timeMs: number): number {
  return pieces.findLastIndex(
    ({ header }) => header.randomAccessOffset !== undefined && header.timestampMs <= timeMs,
  );
}

ffmpegTest(
  "LiveCursor: starts at an available keyframe, and returns the source's bytes piece by piece",
  WITH,
  async () => {
    const pieces = await patternStream();
    const { window, source, clock } = someWindow();
    give(window, pieces.slice(0, 100));
    const cursor = source.live.cursor(0);
    const got = await drained(cursor);
    const edgeMs = pieces[99]!.header.timestampMs;
    const start = entryBefore(pieces.slice(0, 100), edgeMs - 500);
    assert.deepEqual(concatBytes(got), from(pieces.slice(0, 100), start));
    assert.ok(edgeMs - pieces[start]!.header.timestampMs < 1700, "near the edge");
    for (const piece of pieces.slice(100, 200)) {
      const next = cursor.next(never);
      give(window, [piece]);
      assert.deepEqual(await next, piece.bytes, "as soon as it is there");
      got.push(piece.bytes);
    }
    const bytes = concatBytes(got);
    assert.deepEqual(bytes, from(pieces.slice(0, 200), start));
    assert.equal(pidAt(bytes, 0), 0);
    assert.deepEqual(checkTs(bytes, { isPassThrough: true }).faults, []);
    assert.equal(await ffmpegErrors(bytes), "");
    const [first] = (await probePackets(await scratchFile(bytes, "ts"))).filter(({ stream }) => stream === 0);
    assert.ok(first!.isKey);
    assert.equal(clock.waiting, 0);
  },
);

test("LiveCursor: with a backlog it starts at the oldest random access point within that time", async () => {
  const pieces = (await patternStream()).slice(0, 100);
  const edgeMs = pieces.at(-1)!.header.timestampMs;
  const isEntry = (i: number) => pieces[i]!.header.randomAccessOffset !== undefined;
  const startOf = async (shiftMs: number, backlogMs: number) => {
    const { window, source } = someWindow();
    give(window, pieces);
    const { length } = concatBytes(await drained(source.live.cursor(shiftMs, backlogMs)));
    return pieces.findIndex((_, i) => isEntry(i) && from(pieces, i).length === length);
  };
  const oldest = (backlogMs: number) =>
    pieces.findIndex(
      ({ header }) => header.randomAccessOffset !== undefined && header.timestampMs >= edgeMs - backlogMs,
    );
  assert.equal(await startOf(0, 7_000), oldest(7_000));
  assert.equal(await startOf(0, 3_000), oldest(3_000));
  assert.ok((await startOf(0, 0)) > oldest(3_000));
  // A player that seeked back continues at its last position.
  assert.equal(await startOf(9_000, 7_000), entryBefore(pieces, edgeMs - 9_000));
  // Less is kept.
  assert.equal(await startOf(0, 60_000), oldest(60_000));
});

test("LiveCursor: a player at the edge starts behind the last long gap", async () => {
  const pieces = await patternStream();
  const startAfter = async (lost: number) => {
    const { window, source } = someWindow();
    const later = pieces.slice(50 + lost, 80 + lost);
    give(window, pieces.slice(0, 50));
    give(window, later);
    const got = concatBytes(await drained(source.live.cursor(0, 7_000)));
    const entry = later.findIndex(({ header }) => header.randomAccessOffset !== undefined);
    return got.length - from(later, entry).length;
  };
  // Half a second is missing: the backlog may contain the gap.
  assert.ok((await startAfter(4)) > 0);
  assert.equal(await startAfter(16), 0);
});

test("LiveCursor: after an interruption a player waits for new media, and starts with it", async () => {
  const pieces = await patternStream();
  for (const lost of [0, 4, 100]) {
    const { window, source } = someWindow();
    give(window, pieces.slice(0, 50));
    window.interrupted();
    const cursor = source.live.cursor(0, 7_000);
    let isDone = false;
    const next = cursor.next(never).finally(() => {
      isDone = true;
    });
    await settled();
    assert.equal(isDone, false);
    const later = pieces.slice(50 + lost, 90 + lost);
    give(window, later);
    const got = concatBytes([(await next)!, ...(await drained(cursor))]);
    const entry = later.findIndex(({ header }) => header.randomAccessOffset !== undefined);
    assert.equal(got.length === from(later, entry).length, lost === 100);
  }
});

test("LiveCursor: the first player waits for the first piece, and starts with it", async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow();
  const cursor = source.live.cursor(0);
  assert.equal(cursor.position, undefined);
  const first = cursor.next(never);
  await settled();
  give(window, pieces.slice(0, 1));
  const { randomAccessOffset, timestampMs } = pieces[0]!.header;
  assert.deepEqual(
    (await first)!.subarray(0, 188),
    pieces[0]!.bytes.subarray(randomAccessOffset).subarray(0, 188),
  );
  assert.equal(cursor.position, Math.floor(timestampMs / 1000));
});

test("LiveCursor: reads large chunks of whole packets behind the edge, also from disk", async () => {
  const pieces = await patternStream();
  await inFolder(async (folder) => {
    const { window, source } = someWindow({ folder });
    give(window, pieces);
    await written(window);
    const newest = pieces.at(-1)!.header.timestampMs;
    assert.ok(window.kept.memoryBytes < bytesOf(pieces).length / 2, "the older part is on disk alone");
    const cursor = source.live.cursor(newest - pieces[0]!.header.timestampMs);
    const got = await taken(cursor, from(pieces, 0).length);
    for (const chunk of got) {
      assert.equal(chunk.length % 188, 0);
      assert.ok(chunk.length <= 128 * 1024);
    }
    assert.deepEqual(concatBytes(got), from(pieces, 0));
    assert.ok(got.length < pieces.length / 2, `${got.length} chunks for ${pieces.length} pieces`);
    await window.close();
  });
});

test("LiveCursor: seeks to the cut at or before a time, or to the edge, also while it waits", async () => {
  const pieces = await patternStream();
  await inFolder(async (folder) => {
    const { window, source } = someWindow({ folder });
    give(window, pieces);
    await written(window);
    const cursor = source.live.cursor(0);
    await drained(cursor);
    const waiting = cursor.next(never);
    await settled();
    const wantedMs = pieces[0]!.header.timestampMs + 11_500;
    cursor.seek((wantedMs / 1000) as UnixSeconds);
    const first = await waiting;
    const starts = pieces.filter(({ header }) => header.isSegmentStart);
    const cut = starts.findLast(({ header }) => header.timestampMs <= wantedMs)!;
    assert.deepEqual(first!.subarray(0, 188), from([cut], 0).subarray(0, 188));
    assert.ok(cursor.position! <= wantedMs / 1000 && cursor.position! >= wantedMs / 1000 - 4);
    cursor.seek(undefined);
    const edge = concatBytes(await drained(cursor));
    assert.ok(edge.length > 0 && from(pieces, pieces.length - 20).length > edge.length);
    cursor.seek(1 as UnixSeconds);
    assert.deepEqual((await cursor.next(never))!.subarray(0, 188), from(pieces, 0).subarray(0, 188));
    await window.close();
  });
});

ffmpegTest("LiveCursor: goes on behind a hole at the next keyframe, and nowhere before", WITH, async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow();
  give(window, pieces.slice(0, 50));
  const cursor = source.live.cursor(100_000);
  const got = await drained(cursor);
  for (const { header } of pieces.slice(50, 55)) window.skip(header.seq);
  give(window, pieces.slice(55));
  got.push(...(await drained(cursor)));
  const after = pieces.findIndex(
    ({ header }, index) => index >= 55 && header.randomAccessOffset !== undefined,
  );
  assert.deepEqual(concatBytes(got), concatBytes([from(pieces.slice(0, 50), 0), from(pieces, after)]));
  assert.equal(await ffmpegErrors(from(pieces, after)), "");
});

test("LiveCursor: continues at the oldest cut if its position is gone after a stall", async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow({ limitMs: 10_000 });
  give(window, pieces.slice(0, 40));
  const cursor = source.live.cursor(0);
  assert.ok(await cursor.next(never));
  give(window, pieces.slice(40));
  const rest = concatBytes(await drained(cursor));
  const oldest = window.segments[0]!.facts.number;
  const cut = pieces.findIndex(({ header }) => header.isSegmentStart && header.segment === oldest);
  assert.ok(cut > 40);
  assert.deepEqual(rest, from(pieces, cut));
});

test("LiveCursor: hundreds of stalled cursors hold no media and delay nothing", async () => {
  const pieces = await patternStream();
  const { window, source, clock } = someWindow({ limitMs: 10_000 });
  give(window, pieces.slice(0, 40));
  const cursors = Array.from({ length: 500 }, () => source.live.cursor(0));
  for (const cursor of cursors) await cursor.next(never);
  const before = window.kept.memoryBytes;
  for (let round = 0; round < 5; round++) give(window, laterRound(pieces, round).slice(round === 0 ? 40 : 0));
  assert.ok(window.kept.memoryBytes < 4 * before);
  assert.equal(clock.waiting, 0);
});

test("LiveCursor: ends with the stream, and continues if the source returns", async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow();
  const last = { ...pieces[59]!, header: { ...pieces[59]!.header, isEnd: true } };
  give(window, [...pieces.slice(0, 59), last]);
  const cursor = source.live.cursor(0);
  assert.ok((await drained(cursor)).length > 0);
  assert.equal(await cursor.next(never), undefined);
  window.restarted();
  const next = cursor.next(never);
  const epoch = last.header.epoch + 100;
  give(
    window,
    pieces.slice(60).map(({ header, bytes }) => ({ header: { ...header, epoch }, bytes })),
  );
  const entry = pieces.findIndex(
    ({ header }, index) => index >= 60 && header.randomAccessOffset !== undefined,
  );
  assert.deepEqual((await next)!.subarray(0, 188), from(pieces, entry).subarray(0, 188));
});

test("LiveCursor: rejects if the stream is closed, or if its player has disconnected", async () => {
  const { window, source } = someWindow();
  const gone = new AbortController();
  const one = source.live.cursor(0).next(gone.signal);
  gone.abort(new Error("gone"));
  await assert.rejects(one, /gone/);
  const other = source.live.cursor(0).next(never);
  await window.close();
  await assert.rejects(other, { code: "session_stopped" });
});
