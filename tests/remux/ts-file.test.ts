import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { buildPat, crc32Mpeg, packetsOfSection } from "../../src/media/psi.ts";
import { pidAt } from "../../src/media/ts-packet.ts";
import { openTsFile } from "../../src/remux/ts-file.ts";
import { fixture, patternTs } from "../parts/media-fixtures.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { CountedFile } from "./file-access.ts";
import { H264, HEVC, lavfi, makeMedia, scratchFile } from "./make-media.ts";
import { countByStream, ffmpegErrors, frameHashes, probePackets } from "./probe.ts";
import { fmp4Segment, tsSegment } from "./segments.ts";
import { checkTs } from "./ts-checker.ts";

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");

const WITH = { timeout: 60_000 };
/** Times have 33 bits at 90 kHz. */
const WRAP_SECONDS = 2 ** 33 / 90_000;

/** A PAT packet with the programme that ffmpeg writes, and another one. */
const TWO_PROGRAMMES = patPacket([
  [1, 0x1000],
  [2, 0x1010],
]);

function patPacket(programmes: readonly (readonly [number: number, pmtPid: number])[]): Uint8Array {
  const one = buildPat({ number: 1, pmtPid: 0x1000 });
  const section = new Uint8Array(12 + 4 * programmes.length);
  section.set(one.subarray(0, 8));
  const view = new DataView(section.buffer);
  view.setUint16(1, 0xb000 | (section.length - 3));
  for (const [i, [number, pmtPid]] of programmes.entries())
    view.setUint32(8 + 4 * i, number * 0x10000 + (0xe000 | pmtPid));
  view.setUint32(section.length - 4, crc32Mpeg(section, 0, section.length - 4));
  return packetsOfSection(section, 0);
}

const CLIPS: { name: string; args: string[] }[] = [
  { name: "aac.ts", args: [...H264, "-c:a", "aac"] },
  { name: "mp2.ts", args: [...H264, "-c:a", "mp2"] },
  { name: "ac3.ts", args: [...H264, "-c:a", "ac3"] },
  { name: "blu.m2ts", args: [...H264, "-c:a", "ac3", "-mpegts_m2ts_mode", "1", "-f", "mpegts"] },
  { name: "hevc.ts", args: [...HEVC, "-c:a", "eac3"] },
  { name: "mpeg2.ts", args: ["-c:v", "mpeg2video", "-bf", "2", "-g", "25", "-c:a", "mp2"] },
  { name: "irregular.ts", args: [...H264, "-force_key_frames", "1.2,3,3.4,9,10.5,13", "-c:a", "aac"] },
  { name: "sparse.ts", args: [...H264, "-g", "500", "-force_key_frames", "1,2,8.5,12", "-c:a", "aac"] },
  { name: "wrap.ts", args: [...H264, "-c:a", "aac", "-output_ts_offset", "95435"] },
  { name: "audio.ts", args: ["-map", "1:a", "-c:a", "aac"] },
];

for (const { name, args } of CLIPS) {
  ffmpegTest(
    `openTsFile passes every packet of ${name} through, in segments that can be concatenated`,
    WITH,
    async () => {
      const source = await makeMedia(name, [...lavfi(16), ...args]);
      const media = await openTsFile(await CountedFile.open(source), { targetSeconds: 3 });
      assert.ok(media.segments.length >= 3, `${media.segments.length} segments`);
      const segments: Uint8Array[] = [];
      for (let index = media.segments.length - 1; index >= 0; index--)
        segments.unshift(await tsSegment(media, index));
      const whole = concatBytes(segments);
      assert.deepEqual(checkTs(whole, { isPassThrough: true }).faults, []);
      for (const segment of segments) assert.equal(segment[0], 0x47);
      assert.equal(await ffmpegErrors(whole), "");
      const written = await scratchFile(whole, "ts");
      const before = await probePackets(source);
      const after = await probePackets(written);
      assert.deepEqual(countByStream(after), countByStream(before));
      assert.deepEqual(
        after.map((packet) => packet.pts),
        before.map((packet) => packet.pts),
      );
      const stream = name === "audio.ts" ? "a:0" : "v:0";
      assert.deepEqual(await frameHashes(written, stream), await frameHashes(source, stream));
      assert.ok(Math.abs(media.durationSeconds - 16) < 0.3, `${media.durationSeconds} s`);

      const starts: number[] = [];
      for (const [index, segment] of segments.entries()) {
        const own = (await probePackets(await scratchFile(segment, "ts"))).filter(
          (packet) => packet.stream === 0,
        );
        assert.ok(own[0]!.isKey, `segment ${index} begins with a keyframe`);
        starts.push(own[0]!.dts);
      }
      for (const [index, start] of starts.entries()) {
        const said = media.segments[index]!.startSeconds;
        const is = (start - starts[0]! + WRAP_SECONDS) % WRAP_SECONDS;
        assert.ok(Math.abs(said - is) < 0.06, `segment ${index}: said ${said}, is ${is}`);
      }
    },
  );
}

ffmpegTest(
  "openTsFile describes codecs, languages and size, the preferred language first",
  WITH,
  async () => {
    const args =
      "-map 0:v -map 1:a -map 1:a -metadata:s:a:0 language=fre -metadata:s:a:1 language=eng -c:a:0 ac3 -c:a:1 libmp3lame";
    const source = await makeMedia("two.ts", [...lavfi(6), ...args.split(" "), ...H264]);
    const media = await openTsFile(await CountedFile.open(source), { audio: { language: "en" } });
    assert.deepEqual(
      media.tracks.map(({ kind, codec, language, isDefault }) => [kind, codec, language, isDefault]),
      [
        ["video", "h264", "und", true],
        ["audio", "mp3", "eng", true],
        ["audio", "ac3", "fre", false],
      ],
    );
    assert.equal(media.rawMime, undefined, "the file has the languages in another order");
    assert.deepEqual([media.tracks[0]!.width, media.tracks[0]!.height], [320, 180]);
    assert.match(media.tracks[0]!.codecString!, /^avc1\.[0-9a-f]{6}$/);
    assert.deepEqual([media.fmp4Problem, media.silentIn], [undefined, ["fmp4"]]);
    assert.equal(await ffmpegErrors(concatBytes([await media.fmp4Init(), await fmp4Segment(media, 0)])), "");
    assert.equal(await ffmpegErrors(await tsSegment(media, 0)), "");
  },
);

ffmpegTest("openTsFile converts the frames of the source to fMP4, segment by segment", WITH, async () => {
  const source = await makeMedia("aac.ts", [...lavfi(16), ...CLIPS[0]!.args]);
  const media = await openTsFile(await CountedFile.open(source), { targetSeconds: 3 });
  const parts = [await media.fmp4Init()];
  for (let index = 0; index < media.segments.length; index++) parts.push(await fmp4Segment(media, index));
  const written = await scratchFile(concatBytes(parts), "mp4");
  assert.deepEqual(
    countByStream(await probePackets(written)).map(Math.round),
    countByStream(await probePackets(source)),
  );
  assert.deepEqual(await frameHashes(written, "v:0"), await frameHashes(source, "v:0"));
});

ffmpegTest(
  "openTsFile reads little of a large file, and ends each segment where the next one begins",
  WITH,
  async () => {
    const args = [
      ...H264,
      "-b:v",
      "30M",
      "-minrate",
      "30M",
      "-maxrate",
      "30M",
      "-bufsize",
      "30M",
      "-x264-params",
      "nal-hrd=cbr",
    ];
    const path = await makeMedia("large.ts", [...lavfi(30), ...args, "-c:a", "aac"]);
    const file = await CountedFile.open(path);
    assert.ok(file.size > 64e6, `${file.size} bytes`);
    const media = await openTsFile(file, { targetSeconds: 4 });
    const atOpen = file.takeBytesRead();
    // Two seconds of 30 Mbit/s, and the tail.
    assert.ok(atOpen < 8.5e6, `${atOpen} bytes to open`);
    // The rest of an audio unit is searched for in up to 1 MiB after the boundary.
    const near = await tsSegment(media, 0);
    const forNear = file.takeBytesRead();
    assert.ok(forNear < near.length + 1.2e6, `${forNear} bytes for a segment of ${near.length}`);
    const far = await tsSegment(media, 5);
    const forFar = file.takeBytesRead();
    assert.ok(forFar < far.length + 4e6, `${forFar} bytes for a segment of ${far.length}`);
    const segments: Uint8Array[] = [];
    for (let index = 0; index < media.segments.length; index++) segments.push(await tsSegment(media, index));
    const whole = concatBytes(segments);
    assert.deepEqual(checkTs(whole, { isPassThrough: true }).faults, []);
    const written = await scratchFile(whole, "ts");
    assert.deepEqual(countByStream(await probePackets(written)), countByStream(await probePackets(path)));
    const [first, ...others] = media.segments.slice(0, -1);
    assert.equal(first!.durationSeconds, 2);
    for (const { durationSeconds } of others) assert.equal(durationSeconds, 4);
  },
);

test("openTsFile rejects a file that is not a transport stream", async () => {
  await assert.rejects(openTsFile(new CountedFile(new Uint8Array(100_000).fill(1))), {
    code: "unsupported_container",
  });
  await assert.rejects(openTsFile(new CountedFile(new Uint8Array(0))), { code: "unsupported_container" });
});

/** The offsets of the packets in which a PES packet of video begins. */
function pictureStarts(ts: Uint8Array): number[] {
  const starts: number[] = [];
  for (let at = 0; at < ts.length; at += 188) {
    const payload = at + 4 + ((ts[at + 3]! & 0x20) === 0 ? 0 : 1 + ts[at + 4]!);
    const isStart = (ts[at + 1]! & 0x40) !== 0 && payload + 4 <= at + 188;
    if (isStart && ts[payload] === 0 && ts[payload + 2] === 1 && (ts[payload + 3]! & 0xf0) === 0xe0)
      starts.push(at);
  }
  return starts;
}

test("openTsFile: a file that begins within a group of pictures loses no frame in MPEG-TS", async () => {
  const whole = patternTs(3);
  const starts = pictureStarts(whole);
  const cut = concatBytes([whole.subarray(0, starts[0]), whole.subarray(starts[10])]);
  const media = await openTsFile(new CountedFile(cut), { targetSeconds: 1 });
  const segments = await Promise.all(media.segments.map((_, index) => tsSegment(media, index)));
  assert.equal(starts.length, 75);
  assert.equal(pictureStarts(concatBytes(segments)).length, 65);
});

test("openTsFile: a file that needs no changes is its own transport stream, any other is not", async () => {
  const clip = await fixture("clip.mpegts");
  const mimeOf = async (bytes: Uint8Array) => (await openTsFile(new CountedFile(bytes))).rawMime;
  assert.equal(await mimeOf(clip), "video/mp2t");
  const packets = Array.from({ length: clip.length / 188 }, (_, i) => clip.subarray(i * 188, (i + 1) * 188));
  const stamped = concatBytes(packets.flatMap((packet) => [new Uint8Array(4), packet]));
  const programmes = concatBytes(packets.map((packet) => (pidAt(packet, 0) === 0 ? TWO_PROGRAMMES : packet)));
  for (const changed of [concatBytes([new Uint8Array(100).fill(17), clip]), stamped, programmes])
    assert.equal(await mimeOf(changed), undefined);
});

for (const { name, args } of CLIPS) {
  ffmpegTest(
    `openTsFile finds the same boundaries of ${name} in any order, without reading all of it`,
    WITH,
    async () => {
      const source = await makeMedia(name, [...lavfi(16), ...args]);
      const [forward, backward] = [await openUnindexed(source), await openUnindexed(source)];
      const count = forward.segments.length;
      assert.ok(count >= 3, `${count} segments`);
      const ahead: Uint8Array[] = [];
      const behind: Uint8Array[] = [];
      for (let index = 0; index < count; index++) ahead.push(await tsSegment(forward, index));
      for (let index = count - 1; index >= 0; index--) behind.unshift(await tsSegment(backward, index));
      const whole = concatBytes(ahead);
      assert.deepEqual(checkTs(whole, { isPassThrough: true }).faults, []);
      const packets = await probePackets(await scratchFile(whole, "ts"));
      assert.deepEqual(countByStream(packets), countByStream(await probePackets(source)));
      const pictures = (segments: readonly Uint8Array[]) =>
        segments.map((segment) => checkTs(segment, { isPassThrough: true }).units);
      assert.deepEqual(pictures(behind), pictures(ahead));
      const total = forward.segments.reduce((sum, one) => sum + one.durationSeconds, 0);
      assert.ok(Math.abs(total - forward.durationSeconds) < 1e-6 && Math.abs(total - 16) < 0.3, `${total} s`);
      assert.deepEqual(forward.segments, backward.segments);
      for (const { durationSeconds } of forward.segments) assert.ok(durationSeconds > 0);
    },
  );
}

ffmpegTest(
  "openTsFile plays a file with a PCR discontinuity without loss, read in full or in part",
  WITH,
  async () => {
    const [first, second] = [
      await makeMedia("wrap.ts", [...lavfi(16), ...CLIPS[8]!.args]),
      await makeMedia("aac.ts", [...lavfi(16), ...CLIPS[0]!.args]),
    ];
    const bytes = concatBytes([await readFile(first), await readFile(second)]);
    for (const media of [
      await openTsFile(new CountedFile(bytes), { targetSeconds: 3 }),
      await openTsFile(new CountedFile(bytes), { targetSeconds: 3 }, 0),
    ]) {
      const segments: Uint8Array[] = [];
      for (let index = 0; index < media.segments.length; index++)
        segments.push(await tsSegment(media, index));
      const pictures = checkTs(concatBytes(segments), { isPassThrough: true }).units.get(256);
      assert.equal(pictures, 800);
    }
  },
);

async function openUnindexed(path: string) {
  return openTsFile(await CountedFile.open(path), { targetSeconds: 3 }, 0);
}
