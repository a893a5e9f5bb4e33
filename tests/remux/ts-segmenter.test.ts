import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { concatBytes, writeU32 } from "../../src/base/bytes.ts";
import { buildPat, crc32Mpeg } from "../../src/media/psi.ts";
import { pidAt } from "../../src/media/ts-packet.ts";
import { type TsSegment, TsSegmenter } from "../../src/remux/ts-segmenter.ts";
import { patternTs } from "../parts/media-fixtures.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { seededRandom } from "../seeded-random.ts";
import { H264, HEVC, lavfi, makeMedia, scratchFile } from "./make-media.ts";
import { countByStream, ffmpegErrors, frameHashes, probePackets } from "./probe.ts";
import { syntheticTs } from "./synthetic-ts.ts";
import { checkTs } from "./ts-checker.ts";

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");

const WITH = { timeout: 60_000 };

/** 16 s. */
const PATTERN = patternTs(16);

const CLIPS: { name: string; args: string[] }[] = [
  { name: "aac.ts", args: [...H264, "-c:a", "aac"] },
  { name: "mp2.ts", args: [...H264, "-c:a", "mp2"] },
  { name: "ac3.ts", args: [...H264, "-c:a", "ac3"] },
  { name: "blu.m2ts", args: [...H264, "-c:a", "ac3", "-mpegts_m2ts_mode", "1", "-f", "mpegts"] },
  { name: "hevc.ts", args: [...HEVC, "-c:a", "eac3"] },
  { name: "wrap.ts", args: [...H264, "-c:a", "aac", "-output_ts_offset", "95435"] },
  { name: "audio.ts", args: ["-map", "1:a", "-c:a", "aac"] },
];

function segment(bytes: Uint8Array, chunkBytes: number): TsSegment[] {
  const segmenter = new TsSegmenter({ targetSeconds: 3 });
  const segments: TsSegment[] = [];
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    segments.push(...segmenter.push(bytes.subarray(at, at + chunkBytes)));
  }
  return [...segments, ...segmenter.flush()];
}

for (const { name, args } of CLIPS) {
  ffmpegTest(`TsSegmenter cuts ${name} at key frames without loss`, WITH, async () => {
    const source = await makeMedia(name, [...lavfi(16), ...args]);
    const segments = segment(await readFile(source), 65_536);
    assert.ok(segments.length >= 4, `${segments.length} segments`);
    assert.ok(segments.every((one) => one.isKey && !one.isDiscontinuous));
    let at = 0;
    for (const one of segments) {
      assert.ok(Math.abs(one.startSeconds - at) < 1e-6);
      at += one.durationSeconds;
    }
    assert.ok(Math.abs(at - 16) < 0.3, `${at} s in all`);
    const whole = concatBytes(segments.map((one) => one.bytes));
    assert.deepEqual(checkTs(whole, { isPassThrough: true }).faults, []);
    assert.equal(await ffmpegErrors(whole), "");
    const cut = await scratchFile(whole, "ts");
    assert.deepEqual(countByStream(await probePackets(cut)), countByStream(await probePackets(source)));
    const stream = name === "audio.ts" ? "a:0" : "v:0";
    assert.deepEqual(await frameHashes(cut, stream), await frameHashes(source, stream));
  });
}

test("TsSegmenter returns the same segments for any chunks", async () => {
  const bytes = PATTERN.subarray(37, 900_000);
  const wanted = segment(bytes, 1_000_000);
  for (const chunk of [1, 187, 188, 189, 1316, 65_536])
    assert.deepEqual(segment(bytes, chunk), wanted, `chunks of ${chunk}`);
});

ffmpegTest(
  "TsSegmenter accepts input from the middle of a packet and GOP, and begins with a key frame",
  WITH,
  async () => {
    const bytes = await readFile(await makeMedia("aac.ts", [...lavfi(16), ...CLIPS[0]!.args]));
    const segments = segment(bytes.subarray(300_001), 10_000);
    assert.ok(segments.length >= 2 && segments.every((one) => one.isKey));
    const whole = concatBytes(segments.map((one) => one.bytes));
    assert.equal(await ffmpegErrors(whole), "");
    assert.equal(checkTs(segments[0]!.bytes, { isPassThrough: true }).faults.length, 0);
  },
);

test("TsSegmenter finds packets again after garbage, and keeps all of them", async () => {
  const bytes = PATTERN;
  const random = seededRandom(7);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const next = at + 188 * (20 + Math.floor(random() * 200));
    parts.push(bytes.subarray(at, next));
    parts.push(Uint8Array.from({ length: Math.floor(random() * 500) }, () => random() * 256));
    at = next;
  }
  const clean = segment(bytes, 5000);
  const dirty = segment(concatBytes(parts), 5000);
  assert.deepEqual(
    dirty.map((one) => one.bytes.length),
    clean.map((one) => one.bytes.length),
  );
});

test("TsSegmenter continues if one chunk in twenty is lost", async () => {
  const bytes = PATTERN;
  const random = seededRandom(3);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += 1000)
    if (random() > 0.05) parts.push(bytes.subarray(at, at + 1000));
  const segments = segment(concatBytes(parts), 4096);
  assert.ok(segments.length >= 2, `${segments.length} segments`);
  assert.ok(segments.every((one) => one.bytes.length % 188 === 0));
});

test("TsSegmenter marks a PCR discontinuity and continues its own time", async () => {
  const first = PATTERN;
  const segments = segment(concatBytes([first, first]), 20_000);
  assert.deepEqual(segments.filter((one) => one.isDiscontinuous).length, 1);
  const total = segments.reduce((sum, one) => sum + one.durationSeconds, 0);
  assert.ok(Math.abs(total - 32) < 0.3, `${total} s`);
});

test("TsSegmenter cuts without a key frame at the limit, and never buffers more than the limit", async () => {
  const bytes = PATTERN;
  const segmenter = new TsSegmenter({ targetSeconds: 100, maxSegmentBytes: 200_000 });
  const segments = [...segmenter.push(bytes), ...segmenter.flush()];
  assert.ok(segments.some((one) => !one.isKey));
  assert.ok(segments.every((one) => one.bytes.length < 300_000));
});

test("TsSegmenter: the first segment can be shorter than the others", () => {
  const segmenter = new TsSegmenter({ targetSeconds: 3, firstSeconds: 0.5 });
  const seconds = segmenter.push(PATTERN).map(({ durationSeconds }) => Math.round(durationSeconds));
  assert.deepEqual(seconds.slice(0, 3), [1, 3, 3]);
});

test("TsSegmenter.flush rejects input without a transport stream", () => {
  const segmenter = new TsSegmenter();
  assert.deepEqual(segmenter.push(new Uint8Array(500_000).fill(7)), []);
  assert.throws(() => segmenter.flush(), { code: "unsupported_container" });
});

test("TsSegmenter does not wait forever for a programme that is missing from the stream", () => {
  const stream = concatBytes([0, 1, 2, 3].map((at) => syntheticTs(2, at * 1.92)));
  const section = buildPat({ number: 2, pmtPid: 0x1000 });
  const both = new Uint8Array(section.length + 4);
  both.set(section.subarray(0, 8));
  both.set([0, 1, 0xe2, 0], 8);
  both.set(section.subarray(8, 12), 12);
  both[2] = both.length - 3;
  both[13] = 1;
  writeU32(both, both.length - 4, crc32Mpeg(both, 0, both.length - 4));
  for (let at = 0; at < stream.length; at += 188) if (pidAt(stream, at) === 0) stream.set(both, at + 5);
  const segmenter = new TsSegmenter({ targetSeconds: 1 });
  let count = 0;
  for (let i = 0; i < 8; i++) count += segmenter.push(stream).length;
  assert.ok(count > 4, `${count} segments`);
});
