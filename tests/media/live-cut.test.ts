import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { PieceCutter, type PieceCutterOptions } from "../../src/media/live-cut.ts";
import type { LivePiece } from "../../src/media/live-piece.ts";
import { pieceMsFor } from "../../src/media/live-rate.ts";
import { NULL_PID, pidAt, writeTsHeader } from "../../src/media/ts-packet.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { H264, HEVC, lavfi, makeMedia, scratchFile } from "../remux/make-media.ts";
import { countByStream, ffmpegErrors, probePackets } from "../remux/probe.ts";
import { checkTs } from "../remux/ts-checker.ts";
import { seededRandom } from "../seeded-random.ts";

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");

const WITH = { timeout: 60_000 };
const START_MS = 1_700_000_000_000;
const OPTIONS: PieceCutterOptions = { pieceMs: 125, maxPieceBytes: 256 * 1024, segmentMs: 2000 };

/** A clip made by ffmpeg, with a key frame every two seconds. */
async function clip(name: string, codecs: readonly string[], seconds = 12): Promise<Uint8Array> {
  return new Uint8Array(await readFile(await makeMedia(name, [...lavfi(seconds), ...codecs])));
}

interface Cutting {
  readonly options?: Partial<PieceCutterOptions>;
  /** Duration of the whole transfer. */
  readonly lastsMs?: number;
  readonly runPackets?: number;
}

/** Feeds the stream at an even speed, and wakes the cutter when it is due. */
function cut(bytes: Uint8Array, { options, lastsMs = 12_000, runPackets = 7 }: Cutting = {}): LivePiece[] {
  const cutter = new PieceCutter({ ...OPTIONS, ...options });
  const pieces: LivePiece[] = [];
  const run = 188 * runPackets;
  for (let at = 0; at < bytes.length; at += run) {
    const nowMs = START_MS + Math.floor((lastsMs * at) / bytes.length);
    for (let wake = cutter.nextWakeMs(); wake !== undefined && wake <= nowMs; wake = cutter.nextWakeMs())
      pieces.push(...cutter.wake(wake));
    pieces.push(...cutter.push(bytes.subarray(at, at + run), nowMs));
  }
  pieces.push(...cutter.finish(START_MS + lastsMs));
  return pieces;
}

/** All packets except PAT and PMT, which the cutter can repeat. */
function withoutTables(bytes: Uint8Array): Uint8Array {
  const kept: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += 188)
    if (![0, 0x1000, NULL_PID].includes(pidAt(bytes, at))) kept.push(bytes.subarray(at, at + 188));
  return concatBytes(kept);
}

/** Removes all tables after the first ones. */
async function rareTables(): Promise<Uint8Array> {
  const bytes = await fixture("clip.mpegts");
  const kept: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += 188)
    if (at < 20 * 188 || ![0, 0x1000].includes(pidAt(bytes, at))) kept.push(bytes.subarray(at, at + 188));
  return concatBytes(kept);
}

const joined = (pieces: readonly LivePiece[]) => concatBytes(pieces.map(({ bytes }) => bytes));

const CLIPS: readonly (readonly [string, readonly string[]])[] = [
  ["aac.ts", [...H264, "-c:a", "aac"]],
  ["hevc.ts", [...HEVC, "-c:a", "eac3"]],
  ["mpeg2.ts", ["-c:v", "mpeg2video", "-g", "50", "-c:a", "mp2"]],
];

for (const [name, codecs] of CLIPS) {
  ffmpegTest(
    `PieceCutter: the pieces of ${name} form the stream, and each access point is playable on its own`,
    WITH,
    async () => {
      const bytes = await clip(`live-${name}`, codecs);
      const pieces = cut(bytes);
      assert.deepEqual(withoutTables(joined(pieces)), withoutTables(bytes));
      // ffmpeg writes a service description before the PAT.
      const { faults } = checkTs(joined(pieces), { isPassThrough: true });
      assert.deepEqual(faults, ["begins with PID 17, not with the PAT"]);
      const source = await makeMedia(`live-${name}`, [...lavfi(12), ...codecs]);
      const keys = (await probePackets(source)).filter(({ stream, isKey }) => stream === 0 && isKey).length;
      const accesses = pieces.filter(({ randomAccessOffset }) => randomAccessOffset !== undefined);
      assert.equal(accesses.length, keys);
      for (const access of [accesses[1]!, accesses.at(-1)!]) {
        const rest = joined(pieces.slice(pieces.indexOf(access))).subarray(access.randomAccessOffset);
        assert.equal(pidAt(rest, 0), 0);
        assert.equal(await ffmpegErrors(rest), "");
        const [first] = (await probePackets(await scratchFile(rest, "ts"))).filter(
          ({ stream }) => stream === 0,
        );
        assert.ok(first!.isKey, "begins with a keyframe");
      }
    },
  );
}

for (const [name, keyframes, pids] of [
  ["clip", 6, [256, 257]],
  ["hevc", 2, [256, 257]],
  ["mpeg2", 5, [256, 257]],
] as const) {
  test(`PieceCutter: the pieces of ${name}.mpegts form the stream, with an access point at each key frame`, async () => {
    const bytes = await fixture(`${name}.mpegts`);
    const pieces = cut(bytes, { lastsMs: 1_000 });
    assert.deepEqual(withoutTables(joined(pieces)), withoutTables(bytes));
    const { faults, units } = checkTs(joined(pieces), { isPassThrough: true });
    assert.deepEqual(faults, ["begins with PID 17, not with the PAT"]);
    assert.deepEqual([...units.keys()], pids);
    const accesses = pieces.filter(({ randomAccessOffset }) => randomAccessOffset !== undefined);
    assert.equal(accesses.length, keyframes);
    for (const access of accesses.slice(1)) {
      const rest = joined(pieces.slice(pieces.indexOf(access))).subarray(access.randomAccessOffset);
      assert.equal(pidAt(rest, 0), 0);
      assert.equal(checkTs(rest, { isPassThrough: true }).keyframes, keyframes - accesses.indexOf(access));
    }
  });
}

test("PieceCutter: a stream without video has an access point twice a second", async () => {
  const pieces = cut(await fixture("sound.mpegts"), { lastsMs: 6_000 });
  const accesses = pieces.filter(({ randomAccessOffset }) => randomAccessOffset !== undefined);
  assert.ok(accesses.length >= 9 && accesses.length <= 13, `${accesses.length}`);
});

test("PieceCutter: a stream with tables before each key frame passes unchanged", async () => {
  const bytes = await fixture("tables.mpegts");
  assert.deepEqual(joined(cut(bytes)), bytes);
});

ffmpegTest("PieceCutter: repeated tables cost no frame", WITH, async () => {
  const bytes = await rareTables();
  const pieces = cut(bytes);
  assert.ok(joined(pieces).length > bytes.length, "tables were put in");
  assert.deepEqual(withoutTables(joined(pieces)), withoutTables(bytes));
  assert.deepEqual(checkTs(joined(pieces), { isPassThrough: true }).faults.slice(1), []);
  const access = pieces.filter(({ randomAccessOffset }) => randomAccessOffset !== undefined)[3]!;
  const rest = joined(pieces.slice(pieces.indexOf(access))).subarray(access.randomAccessOffset);
  assert.equal(await ffmpegErrors(rest), "");
  const before = countByStream(await probePackets(await scratchFile(bytes, "ts")));
  assert.deepEqual(countByStream(await probePackets(await scratchFile(joined(pieces), "ts"))), before);
});

test("PieceCutter: closes pieces by time and by size, with the arrival time of the last byte", async () => {
  const bytes = await fixture("clip.mpegts");
  const pieces = cut(bytes);
  assert.ok(pieces.length >= 94 && pieces.length <= 97, `${pieces.length} pieces of 125 ms in 12 s`);
  let end = START_MS;
  for (const piece of pieces) {
    end += piece.spanMs;
    assert.ok(piece.spanMs <= 135, `${piece.spanMs} ms`);
    assert.ok(piece.timestampMs <= end && piece.timestampMs >= end - piece.spanMs);
    assert.equal(piece.bytes.length % 188, 0);
  }
  const small = cut(bytes, { options: { maxPieceBytes: 20_000 } });
  assert.ok(small.every((piece) => piece.bytes.length <= 20_000));
  assert.deepEqual(withoutTables(joined(small)), withoutTables(bytes));
});

test("PieceCutter: the packets do not depend on the chunks of the input", async () => {
  const bytes = await rareTables();
  const wanted = joined(cut(bytes, { runPackets: 1 }));
  for (const runPackets of [2, 50, 100_000]) assert.deepEqual(joined(cut(bytes, { runPackets })), wanted);
});

test("PieceCutter: segments begin at key frames after the minimum duration, numbered by time and then in sequence", async () => {
  const starts = (segmentMs: number, firstSegment?: number) =>
    cut(bytes, { options: { segmentMs, ...(firstSegment !== undefined && { firstSegment }) } })
      .filter(({ isSegmentStart }) => isSegmentStart)
      .map(({ segment }) => segment);
  const bytes = await fixture("clip.mpegts");
  const first = START_MS / 2000;
  assert.deepEqual(
    starts(2000),
    [0, 1, 2, 3, 4, 5].map((i) => first + i),
  );
  assert.equal(starts(3000).length, 3, "every second keyframe: 4 s each");
  assert.equal(starts(2000, first + 77)[0], first + 77);
});

test("PieceCutter: measures the bit rate by the PCR, and chooses the piece duration by it", async () => {
  const bytes = await fixture("clip.mpegts");
  const cutter = new PieceCutter(OPTIONS);
  assert.equal(cutter.bytesPerSecond, undefined);
  cutter.push(bytes, START_MS);
  const mean = bytes.length / 12;
  assert.ok(Math.abs(cutter.bytesPerSecond! / mean - 1) < 0.1, `${cutter.bytesPerSecond} of ${mean}`);
  assert.deepEqual([100_000, 249_999, 250_000, 1_000_000].map(pieceMsFor), [250, 250, 125, 125]);
});

test("PieceCutter: a discontinuity of the PCR starts a marked piece, and the next key frame a segment", async () => {
  const bytes = await fixture("clip.mpegts");
  const pieces = cut(concatBytes([bytes, bytes]), { lastsMs: 24_000, options: { segmentMs: 5000 } });
  const broken = pieces.filter(({ isDiscontinuity }) => isDiscontinuity);
  assert.equal(broken.length, 1);
  const at = pieces.indexOf(broken[0]!);
  assert.ok(Math.abs(joined(pieces.slice(0, at)).length - bytes.length) < 20_000);
  const next = pieces.slice(at).find(({ randomAccessOffset }) => randomAccessOffset !== undefined)!;
  assert.ok(next.isSegmentStart);
});

test("PieceCutter: a pause of source and PCR is not a discontinuity", async () => {
  const bytes = await fixture("clip.mpegts");
  const half = 188 * Math.floor(bytes.length / 376);
  const cutter = new PieceCutter(OPTIONS);
  const pieces = [...cutter.push(bytes.subarray(0, half), START_MS)];
  let nowMs = START_MS;
  while (nowMs < START_MS + 6000) {
    nowMs = cutter.nextWakeMs()!;
    const woken = cutter.wake(nowMs);
    pieces.push(...woken);
  }
  const silent = pieces.filter((piece) => piece.bytes.length === 0);
  assert.ok(silent.length >= 5 && silent.every((piece) => piece.spanMs === 1000), `${silent.length}`);
  pieces.push(...cutter.push(bytes.subarray(half), nowMs), ...cutter.finish(nowMs));
  assert.equal(pieces.filter(({ isDiscontinuity }) => isDiscontinuity).length, 0);
  pieces.push(...cutter.break(nowMs), ...cutter.push(bytes, nowMs), ...cutter.finish(nowMs));
  assert.equal(pieces.filter(({ isDiscontinuity }) => isDiscontinuity).length, 1);
});

test("PieceCutter: null packets are dropped", async () => {
  const bytes = await fixture("clip.mpegts");
  const stuffing = new Uint8Array(188).fill(0xff);
  writeTsHeader(stuffing, 0, NULL_PID, false, false, 0);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += 188 * 5) parts.push(bytes.subarray(at, at + 188 * 5), stuffing);
  assert.deepEqual(
    joined(cut(concatBytes(parts), { lastsMs: 1_000 })),
    joined(cut(bytes, { lastsMs: 1_000 })),
  );
});

ffmpegTest("PieceCutter: playback of a stream without video can start twice a second", WITH, async () => {
  const pieces = cut(await clip("live-sound.ts", ["-map", "1:a", "-c:a", "aac"]));
  const accesses = pieces.filter(({ randomAccessOffset }) => randomAccessOffset !== undefined);
  assert.ok(accesses.length >= 18 && accesses.length <= 25, `${accesses.length}`);
  const rest = joined(pieces.slice(pieces.indexOf(accesses[3]!))).subarray(accesses[3]!.randomAccessOffset);
  assert.equal(await ffmpegErrors(rest), "");
});

test("PieceCutter: pieces of damaged input are whole packets within the size limit", async () => {
  const bytes = await fixture("clip.mpegts");
  const random = seededRandom(5);
  let accessCount = 0;
  for (let round = 0; round < 40; round++) {
    const broken = bytes.slice();
    for (let i = 0; i < 1000; i++) broken[Math.floor(random() * broken.length)] = random() * 256;
    for (let at = 0; at < broken.length; at += 188) broken[at] = 0x47;
    const pieces = cut(broken, { options: { maxPieceBytes: 30_000 } });
    assert.ok(pieces.every((piece) => piece.bytes.length % 188 === 0 && piece.bytes.length <= 30_000));
    const accesses = pieces.filter(({ randomAccessOffset }) => randomAccessOffset !== undefined);
    accessCount += accesses.length;
    for (const access of accesses) assert.equal(pidAt(access.bytes, access.randomAccessOffset!), 0);
  }
  assert.ok(accessCount > 0);
});
