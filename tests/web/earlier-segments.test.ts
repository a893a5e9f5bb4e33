import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { LiveSource } from "../../src/live/window/live-source.ts";
import { PieceLog } from "../../src/live/window/piece-log.ts";
import { decodePieces, encodePieces, verifiedPieces } from "../../src/live/window/verified-pieces.ts";
import type { ListedSegment } from "../../src/transfer/piece-segments.ts";
import { SHARED_MANIFEST_URLS, segmentNumber } from "../../src/transfer/segment-source.ts";
import { EarlierSegments, type EarlierSegmentsOptions } from "../../src/web/page/viewer/earlier-segments.ts";
import { cutPiece } from "../../src/wire/live/chunks.ts";
import { decodeHeader, encodeHeader } from "../../src/wire/live/header.ts";
import { chunkHashesOf, liveHash, signHeader } from "../../src/wire/live/trust.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { someStream } from "../live/driver-parts.ts";
import { PIECE_MS, patternStream, SEGMENT_MS, someWindow } from "../live/window-stream.ts";

const never = new AbortController().signal;
const stream = someStream({ stripeCount: 16, pieceMs: PIECE_MS, segmentMs: SEGMENT_MS });
const verification = {
  ...{ file: stream.file, sha256: runtime.sha256 },
  verify: runtime.ed25519Verifier(stream.file.info.publicKey),
};

/** The test pattern as signed pieces. */
async function signedPattern() {
  const { key, file } = stream;
  let previousHash: Uint8Array = new Uint8Array(20);
  return (await patternStream()).map(({ header, bytes }) => {
    const chunkHashes = chunkHashesOf(bytes, 16, runtime.sha256);
    const signed = encodeHeader({ ...header, previousHash, chunkHashes });
    signHeader(signed, file.infohash, key.sign);
    previousHash = liveHash(signed, runtime.sha256);
    return { value: decodeHeader(signed, file.info), signed, chunks: cutPiece(bytes, 16) };
  });
}

/** An engine that has received 30 s, and a page that has opened then and received 10 s more. */
async function engineAndPage(
  sources: (log: PieceLog) => Pick<EarlierSegmentsOptions, "fromPages" | "fromEngine"> = (log) => ({
    fromPages: async () => {},
    fromEngine: async (number, _, take) => take(await log.segment(number)),
  }),
) {
  const pieces = await signedPattern();
  const opensAt = Math.round((3 * pieces.length) / 4);
  const engine = someWindow();
  const log = new PieceLog(engine.window);
  for (const { value, chunks, signed } of pieces.slice(0, opensAt)) log.piece(value, chunks, signed);
  const listed = log.list();
  const recent = verifiedPieces(decodePieces(await log.recent(), stream.file), verification);
  const { window } = someWindow();
  for (const { header, chunks } of recent) window.piece(header.value, chunks);
  for (const { value, chunks, signed } of pieces.slice(opensAt)) {
    log.piece(value, chunks, signed);
    window.piece(value, chunks);
  }
  const earlier = new EarlierSegments({
    ...{ ...verification, listed, limitMs: 120_000, ...sources(log) },
    makeWindow: () => someWindow().window,
  });
  const source = new LiveSource({
    ...{ window, infohash: stream.file.infohash, clock: new FakeClock(), listedMs: 120_000 },
    earlier: (first) => earlier.before(first),
  });
  return { engine, log, listed, window, earlier, source };
}

test("PieceLog: responses to several pages share the bytes", async () => {
  const { log, listed } = await engineAndPage();
  const { number } = listed.at(-1)!;
  assert.equal(await log.segment(number), await log.segment(number));
  assert.equal(await log.recent(), await log.recent());
});

test("PieceLog: a page starts with the newest complete segment and all that follows", async () => {
  const { listed, window } = await engineAndPage();
  const [first] = window.segments;
  assert.equal(first!.facts.number, listed.at(-1)!.number);
  assert.ok(first!.isWhole);
});

test("EarlierSegments: the manifest lists what the engine had, and each segment is that of the engine", async () => {
  const { engine, listed, window, earlier, source } = await engineAndPage();
  const before = earlier.before(window.segments[0]!);
  assert.ok(before.length > 10, `${before.length} segments`);
  assert.deepEqual(before, listed.slice(0, -1));
  const text = await source.manifest({ urls: SHARED_MANIFEST_URLS }, "main", never);
  const listedNumbers = [...text.matchAll(/^(\d+)\.ts$/gm)].map(([, number]) => Number(number));
  assert.equal(listedNumbers[0], segmentNumber(0, listed[0]!.number));
  assert.match(text, new RegExp(`#EXT-X-MEDIA-SEQUENCE:${listed[0]!.number}\\n`));
  assert.deepEqual(
    listedNumbers,
    listedNumbers.map((_, i) => listedNumbers[0]! + i),
  );
  for (const each of before) {
    const bytes = await earlier.load(earlier.find(segmentNumber(0, each.number))!, never);
    assert.deepEqual(bytes, await engine.source.make("ts", each.number, 0, never));
  }
});

test("EarlierSegments: segments that ended while the page opened are listed, too", async () => {
  const { window, earlier, listed } = await engineAndPage();
  const [, , third] = window.segments;
  const before = earlier.before(third!);
  assert.deepEqual(
    before.map(({ number }) => number),
    Array.from({ length: third!.facts.number - listed[0]!.number }, (_, i) => listed[0]!.number + i),
  );
  const { startMs, durationMs } = before.at(-1)!;
  assert.ok(Math.abs(startMs + durationMs - third!.facts.startMs) < 2);
});

test("EarlierSegments: what is not genuine, or of another time, is not played; the next source is asked", async () => {
  const asked: string[] = [];
  let wanted: ListedSegment;
  const { engine, listed, earlier } = await engineAndPage((log) => ({
    async fromPages(number, _, take) {
      const bytes = await log.segment(number);
      const pieces = decodePieces(bytes, stream.file);
      const changed = bytes.slice();
      changed[5_000]! ^= 1;
      for (const [name, answer] of [
        ["changed", changed],
        ["incomplete", encodePieces(pieces.toSpliced(3, 1))],
        ["cut", bytes.subarray(0, bytes.length / 2)],
        ["other", await log.segment(number + 1)],
        ["nothing", new Uint8Array(0)],
      ] as const) {
        asked.push(name);
        assert.equal(await take(answer), false);
      }
      throw new Error("no other page");
    },
    async fromEngine(number, _, take) {
      asked.push("engine");
      return take(number === wanted.number ? await log.segment(number) : new Uint8Array(1_000));
    },
  }));
  wanted = listed[3]!;
  const bytes = await earlier.load(wanted, never);
  assert.deepEqual(asked, ["changed", "incomplete", "cut", "other", "nothing", "engine"]);
  assert.deepEqual(bytes, await engine.source.make("ts", wanted.number, 0, never));
  assert.deepEqual(earlier.loaded, { fromPages: 0, fromEngine: 1 });
  await assert.rejects(earlier.load(listed[4]!, never), { code: "no_such_segment" });
});

test("EarlierSegments: a genuine segment of another time with the same number is refused", async () => {
  const { listed, earlier } = await engineAndPage();
  const shifted = { ...listed[3]!, startMs: listed[3]!.startMs - 60_000 };
  await assert.rejects(earlier.load(shifted, never), { code: "no_such_segment" });
});

test("PieceLog: lists two minutes at most, no segment with a gap, and nothing before a jump", async () => {
  const pieces = await signedPattern();
  const { window } = someWindow();
  const log = new PieceLog(window);
  const gapAt = Math.round(pieces.length / 2);
  pieces.forEach(({ value, chunks, signed }, i) => {
    if (i !== gapAt) log.piece(value, chunks, signed);
  });
  const gap = pieces[gapAt]!.value.segment;
  const listed = log.list();
  assert.ok(listed.length > 5);
  assert.ok(listed.every(({ number }) => number > gap));
  await assert.rejects(log.segment(gap), { code: "no_such_segment" });
  assert.ok((await log.segment(gap - 2)).length > 0);
});
