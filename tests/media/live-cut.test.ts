import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { seededRandom } from "../../src/base/random.ts";
import { PieceCutter, type PieceCutterOptions } from "../../src/media/live-cut.ts";
import type { LivePiece } from "../../src/media/live-piece.ts";
import { pieceMsFor } from "../../src/media/live-rate.ts";
import { NULL_PID, pidAt, writeTsHeader } from "../../src/media/ts-packet.ts";
import { H264, HEVC, hasFfmpeg, lavfi, makeMedia, scratchFile } from "../remux/make-media.ts";
import { countByStream, ffmpegComplaints, probePackets } from "../remux/probe.ts";
import { checkTs } from "../remux/ts-checker.ts";

const WITH = { skip: (await hasFfmpeg()) ? false : "ffmpeg is not installed", timeout: 60_000 };
const START_MS = 1_700_000_000_000;
const OPTIONS: PieceCutterOptions = { pieceMs: 125, maxPieceBytes: 256 * 1024, segmentMs: 2000 };

/** A clip of `seconds`, keyframes every two seconds, as ffmpeg writes it. */
async function clip(name: string, codecs: readonly string[], seconds = 12): Promise<Uint8Array> {
  return new Uint8Array(await readFile(await makeMedia(name, [...lavfi(seconds), ...codecs])));
}

interface Cutting {
  readonly options?: Partial<PieceCutterOptions>;
  /** How long the whole takes to come, in ms. */
  readonly lastsMs?: number;
  readonly runPackets?: number;
}

/** Feeds the stream at an even pace, waking the cutter when it asks for it. */
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

/** All packets but those of PAT and PMT, which the cutter may repeat. */
function withoutTables(bytes: Uint8Array): Uint8Array {
  const kept: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += 188)
    if (![0, 0x1000, NULL_PID].includes(pidAt(bytes, at))) kept.push(bytes.subarray(at, at + 188));
  return concatBytes(kept);
}

/** A source that tells its tables once, at the start. */
async function rareTables(): Promise<Uint8Array> {
  const bytes = await clip("live-aac.ts", CLIPS[0]![1]);
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
  test(
    `PieceCutter: pieces of ${name} joined are the stream, and each access point plays by itself`,
    WITH,
    async () => {
      const bytes = await clip(`live-${name}`, codecs);
      const pieces = cut(bytes);
      assert.deepEqual(withoutTables(joined(pieces)), withoutTables(bytes));
      // ffmpeg begins with the names of services, before the PAT.
      const { faults } = checkTs(joined(pieces), { isPassThrough: true });
      assert.deepEqual(faults, ["begins with PID 17, not with the PAT"]);
      const source = await makeMedia(`live-${name}`, [...lavfi(12), ...codecs]);
      const keys = (await probePackets(source)).filter(({ stream, isKey }) => stream === 0 && isKey).length;
      const accesses = pieces.filter(({ randomAccessOffset }) => randomAccessOffset !== undefined);
      assert.equal(accesses.length, keys);
      for (const access of [accesses[1]!, accesses.at(-1)!]) {
        const rest = joined(pieces.slice(pieces.indexOf(access))).subarray(access.randomAccessOffset);
        assert.equal(pidAt(rest, 0), 0);
        assert.equal(await ffmpegComplaints(rest), "");
        const [first] = (await probePackets(await scratchFile(rest, "ts"))).filter(
          ({ stream }) => stream === 0,
        );
        assert.ok(first!.isKey, "begins with a keyframe");
      }
    },
  );
}

test("PieceCutter: what is whole already passes without a changed bit", WITH, async () => {
  const bytes = await clip("live-tables.ts", [...H264, "-c:a", "aac", "-mpegts_flags", "+pat_pmt_at_frames"]);
  assert.deepEqual(joined(cut(bytes)), bytes);
});

test("PieceCutter: every viewer sees every frame, the repeated tables notwithstanding", WITH, async () => {
  const bytes = await rareTables();
  const pieces = cut(bytes);
  assert.ok(joined(pieces).length > bytes.length, "tables were put in");
  assert.deepEqual(withoutTables(joined(pieces)), withoutTables(bytes));
  assert.deepEqual(checkTs(joined(pieces), { isPassThrough: true }).faults.slice(1), []);
  const access = pieces.filter(({ randomAccessOffset }) => randomAccessOffset !== undefined)[3]!;
  const rest = joined(pieces.slice(pieces.indexOf(access))).subarray(access.randomAccessOffset);
  assert.equal(await ffmpegComplaints(rest), "");
  const before = countByStream(await probePackets(await scratchFile(bytes, "ts")));
  assert.deepEqual(countByStream(await probePackets(await scratchFile(joined(pieces), "ts"))), before);
});

test("PieceCutter: closes by time and by size, and says when the last byte came", WITH, async () => {
  const bytes = await clip("live-aac.ts", CLIPS[0]![1]);
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

test("PieceCutter: the same stream gives the same packets, however it comes", WITH, async () => {
  const bytes = await rareTables();
  const wanted = joined(cut(bytes, { runPackets: 1 }));
  for (const runPackets of [2, 50, 100_000]) assert.deepEqual(joined(cut(bytes, { runPackets })), wanted);
});

test(
  "PieceCutter: segments begin at keyframes after their least duration, numbered by the clock, then one by one",
  WITH,
  async () => {
    const starts = (segmentMs: number, firstSegment?: number) =>
      cut(bytes, { options: { segmentMs, ...(firstSegment !== undefined && { firstSegment }) } })
        .filter(({ isSegmentStart }) => isSegmentStart)
        .map(({ segment }) => segment);
    const bytes = await clip("live-aac.ts", CLIPS[0]![1]);
    const first = START_MS / 2000;
    assert.deepEqual(
      starts(2000),
      [0, 1, 2, 3, 4, 5].map((i) => first + i),
    );
    assert.equal(starts(3000).length, 3, "every second keyframe: 4 s each");
    assert.equal(starts(2000, first + 77)[0], first + 77);
  },
);

test("PieceCutter: the rate by the stream's own clock, and the pieces that fit it", WITH, async () => {
  const bytes = await clip("live-aac.ts", CLIPS[0]![1]);
  const cutter = new PieceCutter(OPTIONS);
  assert.equal(cutter.bytesPerSecond, undefined);
  cutter.push(bytes, START_MS);
  const mean = bytes.length / 12;
  assert.ok(Math.abs(cutter.bytesPerSecond! / mean - 1) < 0.1, `${cutter.bytesPerSecond} of ${mean}`);
  assert.deepEqual([100_000, 249_999, 250_000, 1_000_000].map(pieceMsFor), [250, 250, 125, 125]);
});

test(
  "PieceCutter: a jump of the clock begins a piece that says so, and the next keyframe a segment",
  WITH,
  async () => {
    const bytes = await clip("live-aac.ts", CLIPS[0]![1]);
    const pieces = cut(concatBytes([bytes, bytes]), { lastsMs: 24_000, options: { segmentMs: 5000 } });
    const broken = pieces.filter(({ isDiscontinuity }) => isDiscontinuity);
    assert.equal(broken.length, 1);
    const at = pieces.indexOf(broken[0]!);
    assert.ok(Math.abs(joined(pieces.slice(0, at)).length - bytes.length) < 20_000);
    const next = pieces.slice(at).find(({ randomAccessOffset }) => randomAccessOffset !== undefined)!;
    assert.ok(next.isSegmentStart);
  },
);

test("PieceCutter: the clock may stand still with the source", WITH, async () => {
  const bytes = await clip("live-aac.ts", CLIPS[0]![1]);
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

test("PieceCutter: stuffing is left out", WITH, async () => {
  const bytes = await clip("live-aac.ts", CLIPS[0]![1]);
  const stuffing = new Uint8Array(188).fill(0xff);
  writeTsHeader(stuffing, 0, NULL_PID, false, false, 0);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += 188 * 5) parts.push(bytes.subarray(at, at + 188 * 5), stuffing);
  assert.deepEqual(joined(cut(concatBytes(parts))), joined(cut(bytes)));
});

test("PieceCutter: sound alone can be joined twice a second", WITH, async () => {
  const pieces = cut(await clip("live-sound.ts", ["-map", "1:a", "-c:a", "aac"]));
  const accesses = pieces.filter(({ randomAccessOffset }) => randomAccessOffset !== undefined);
  assert.ok(accesses.length >= 18 && accesses.length <= 25, `${accesses.length}`);
  const rest = joined(pieces.slice(pieces.indexOf(accesses[3]!))).subarray(accesses[3]!.randomAccessOffset);
  assert.equal(await ffmpegComplaints(rest), "");
});

test("PieceCutter: whatever comes, pieces are whole packets within their size", WITH, async () => {
  const bytes = await clip("live-aac.ts", CLIPS[0]![1]);
  const random = seededRandom(5);
  for (let round = 0; round < 40; round++) {
    const broken = bytes.slice(0, 188 * 3000);
    for (let i = 0; i < 4000; i++) broken[Math.floor(random() * broken.length)] = random() * 256;
    for (let at = 0; at < broken.length; at += 188) broken[at] = 0x47;
    const pieces = cut(broken, { options: { maxPieceBytes: 30_000 } });
    assert.ok(pieces.every((piece) => piece.bytes.length % 188 === 0 && piece.bytes.length <= 30_000));
    for (const { bytes: own, randomAccessOffset } of pieces)
      if (randomAccessOffset !== undefined) assert.equal(pidAt(own, randomAccessOffset), 0);
  }
});
