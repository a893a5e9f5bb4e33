import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { annexBNals } from "../../src/media/nal.ts";
import { pidAt } from "../../src/media/ts-packet.ts";
import { streamsOf } from "../../src/media/ts-programme.ts";
import { TableReader } from "../../src/media/ts-tables.ts";
import { unitHead } from "../../src/media/ts-units.ts";
import type { TsMuxPacket } from "../../src/remux/ts-mux-input.ts";
import { TS_BASE_SECONDS } from "../../src/remux/ts-mux-input.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";
import { fixturePath } from "../parts/media-fixtures.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { lavfi, makeMedia, scratchFile } from "./make-media.ts";
import { countByStream, ffmpegErrors, frameHashes, probePackets } from "./probe.ts";
import { cutPackets, readPackets } from "./read-packets.ts";
import { GROUP_SECONDS, PPS, SPS, SYNTHETIC_TRACKS, syntheticPackets } from "./synthetic-ts.ts";
import { checkTs } from "./ts-checker.ts";

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");

const H264 = "-c:v libx264 -preset ultrafast -bf 3 -b_strategy 0 -g 50 -pix_fmt yuv420p".split(" ");
const HEVC =
  "-c:v libx265 -preset ultrafast -x265-params log-level=none:bframes=3:keyint=50 -pix_fmt yuv420p".split(
    " ",
  );
const TWO_LANGUAGES =
  "-map 0:v -map 1:a -map 1:a -metadata:s:a:0 language=fra -metadata:s:a:1 language=eng -c:a:0 aac -c:a:1 ac3".split(
    " ",
  );

const CLIPS: { name: string; args: string[] }[] = [
  { name: "h264-aac.mp4", args: [...H264, "-c:a", "aac"] },
  { name: "h264-ac3.mkv", args: [...H264, "-c:a", "ac3"] },
  { name: "h264-eac3.mp4", args: [...H264, "-c:a", "eac3"] },
  { name: "h264-mp3.mp4", args: [...H264, "-c:a", "libmp3lame"] },
  { name: "h264-mp2.mkv", args: [...H264, "-c:a", "mp2"] },
  { name: "h264-two.mkv", args: [...TWO_LANGUAGES, ...H264] },
  { name: "hevc-aac.mkv", args: [...HEVC, "-c:a", "aac"] },
  { name: "hevc-open.mp4", args: [...HEVC, "-c:a", "aac", "-tag:v", "hvc1"] },
];

for (const { name, args } of CLIPS) {
  ffmpegTest(
    `TsMuxer.segment carries every frame of ${name}, in valid packets and times`,
    { timeout: 60_000 },
    async () => {
      const source = await makeMedia(name, [...lavfi(12), ...args]);
      const { tracks, packets } = await readPackets(source);
      const muxer = new TsMuxer(tracks);
      const cuts = cutPackets(tracks, packets, 4);
      assert.ok(cuts.length >= 2, `${cuts.length} segments`);
      const segments = cuts.map((cut) => muxer.segment(cut));
      for (const segment of segments) assert.deepEqual(checkTs(segment, { isSegment: true }).faults, []);
      const whole = concatBytes(segments);
      assert.deepEqual(checkTs(whole, { isSegment: true }).faults, []);
      assert.equal(await ffmpegErrors(whole), "");

      const written = await scratchFile(whole, "ts");
      const before = await probePackets(source);
      const after = await probePackets(written);
      assert.deepEqual(countByStream(after), countByStream(before));
      for (const stream of countByStream(before).keys()) {
        const was = before.filter((packet) => packet.stream === stream);
        const is = after.filter((packet) => packet.stream === stream);
        assert.ok(
          is.every((packet, i) => packet.pts >= packet.dts && (i === 0 || packet.dts > is[i - 1]!.dts)),
        );
        assert.deepEqual(
          is.map((packet) => packet.isKey),
          was.map((packet) => packet.isKey),
        );
        for (const [i, packet] of is.entries()) {
          const moved = packet.pts - was[i]!.pts - 10;
          assert.ok(Math.abs(moved) < 0.002, `stream ${stream} packet ${i}: moved by ${moved} s`);
        }
      }
      assert.deepEqual(await frameHashes(written, "v:0"), await frameHashes(source, "v:0"));
    },
  );
}

test("TsMuxer.segment makes the same bytes in any order", async () => {
  const { tracks, packets } = await readPackets(fixturePath("end.mp4"));
  const cuts = cutPackets(tracks, packets, 2);
  const forward = cuts.map((cut) => new TsMuxer(tracks).segment(cut));
  const muxer = new TsMuxer(tracks);
  const backward = cuts.map((cut) => muxer.segment(cut)).reverse();
  assert.deepEqual(forward, backward.reverse());
});

test("TsMuxer.segment keeps times and PCR correct across the 33-bit wrap", () => {
  const muxer = new TsMuxer(SYNTHETIC_TRACKS);
  const wrapSeconds = 2 ** 33 / 90_000 - TS_BASE_SECONDS;
  const seconds = 4 * GROUP_SECONDS;
  const starts = [-1.5, -0.5, 0.5].map((share) => wrapSeconds + share * seconds);
  const segments = starts.map((start) => muxer.segment(syntheticPackets(seconds, start)));
  const report = checkTs(concatBytes(segments), { isSegment: true });
  assert.deepEqual(report.faults, []);
});

test("TsMuxer.segment adds PCR packets if frames are rare", () => {
  const muxer = new TsMuxer([{ ...SYNTHETIC_TRACKS[0]!, reorderSeconds: 0 }]);
  const still = (at: number) =>
    Array.from({ length: 4 }, (_, i) => ({
      ...syntheticPackets(1)[0]!,
      ptsSeconds: at + i,
      durationSeconds: 1,
      isKey: i === 0,
    }));
  const report = checkTs(concatBytes([muxer.segment(still(0)), muxer.segment(still(4))]), {
    isSegment: true,
  });
  assert.deepEqual(report.faults, []);
  assert.ok(report.clockGapTicks <= 9000, `${report.clockGapTicks} ticks`);
});

test("TsMuxer.segment begins a PES packet of audio where a gap is, so that the frames after it have their times", () => {
  const frames = syntheticPackets(1)
    .filter((packet) => packet.track === 1)
    .slice(0, 8)
    .map((packet) => ({ ...packet, track: 0 }));
  const late = frames.map((packet, i) =>
    i < 4 ? packet : { ...packet, ptsSeconds: packet.ptsSeconds + 0.5 },
  );
  const audioUnits = (packets: TsMuxPacket[]) => {
    const { units } = checkTs(new TsMuxer([SYNTHETIC_TRACKS[1]!]).segment(packets), { isSegment: true });
    return [...units.values()].reduce((sum, count) => sum + count, 0);
  };
  assert.equal(audioUnits(frames), 1);
  assert.equal(audioUnits(late), 2);
});

test("TsMuxer.segment writes a stream without video, with a PCR", async () => {
  const audio = syntheticPackets(8)
    .filter((packet) => packet.track === 1)
    .map((packet) => ({ ...packet, track: 0, ptsSeconds: packet.ptsSeconds - 0.021 }));
  const muxer = new TsMuxer([SYNTHETIC_TRACKS[1]!]);
  const segments = [audio.slice(0, 200), audio.slice(200)].map((part) => muxer.segment(part));
  assert.deepEqual(checkTs(concatBytes(segments), { isSegment: true }).faults, []);
  assert.deepEqual(checkTs(muxer.segment(audio.slice(0, 1)), { isSegment: true }).faults, []);
});

test("TsMuxer.segment puts parameter sets before key frames unless they are in band, and one delimiter", () => {
  const key = (units: Uint8Array[]) => {
    const parts = units.flatMap((unit) => [new Uint8Array([0, 0, 0, unit.length]), unit]);
    return { track: 0, ptsSeconds: 0, durationSeconds: 0.04, isKey: true, data: concatBytes(parts) };
  };
  const idr = new Uint8Array(60).fill(0x65);
  const types = (packet: TsMuxPacket) => {
    const ts = new TsMuxer([SYNTHETIC_TRACKS[0]!]).segment([packet]);
    const at = Array.from({ length: ts.length / 188 }, (_, i) => i * 188).find(
      (start) => pidAt(ts, start) === 0x100,
    )!;
    const { bytes } = unitHead(ts, at, 0x100, 4096);
    return annexBNals(bytes).map(({ start }) => bytes[start]! & 31);
  };
  assert.deepEqual(types(key([idr])), [9, 7, 8, 5]);
  assert.deepEqual(types(key([SPS, PPS, idr])), [9, 7, 8, 5]);
  assert.deepEqual(types(key([new Uint8Array([9, 0xf0]), idr])), [9, 7, 8, 5]);
  assert.deepEqual(types({ ...key([idr]), isKey: false }), [9, 5]);
});

test("TsMuxer.segment declares DTS as type 0x82 with a registration, which players need to recognise it", () => {
  const [video, audio] = SYNTHETIC_TRACKS;
  const muxer = new TsMuxer([video!, { ...audio!, codec: "dts" }]);
  const segment = muxer.segment(syntheticPackets(1));
  assert.deepEqual(checkTs(segment, { isSegment: true }).faults, []);
  const reader = new TableReader();
  for (let at = 0; at < 2 * 188; at += 188) reader.push(segment, at);
  const { pmt } = reader.tables(true)!;
  assert.deepEqual(
    pmt.streams.map(({ streamType, registration }) => [streamType, registration]),
    [
      [0x1b, undefined],
      [0x82, "DTS1"],
    ],
  );
  assert.equal(streamsOf(pmt)[1]!.codec, "dts");
});

test("TsMuxer rejects invalid configurations", () => {
  const cut = { codec: "h264", language: "und", config: new Uint8Array([1, 2]) } as const;
  assert.throws(() => new TsMuxer([cut]), { code: "broken_media" });
});
