import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";
import { hasFfmpeg, lavfi, makeMedia } from "./make-media.ts";
import { countByStream, ffmpegComplaints, frameHashes, probePackets } from "./probe.ts";
import { cutPackets, readPackets } from "./read-packets.ts";
import { checkTs } from "./ts-checker.ts";

const skip = !(await hasFfmpeg());
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
  test(`TsMuxer.segment carries every frame of ${name}, in valid packets and times`, {
    skip,
    timeout: 60_000,
  }, async () => {
    const source = await makeMedia(name, [...lavfi(12), ...args]);
    const { tracks, packets } = await readPackets(source);
    const muxer = new TsMuxer(tracks);
    const cuts = cutPackets(tracks, packets, 4);
    assert.ok(cuts.length >= 2, `${cuts.length} segments`);
    const segments = cuts.map((cut) => muxer.segment(cut));
    for (const segment of segments) assert.deepEqual(checkTs(segment, { isSegment: true }).faults, []);
    const whole = concatBytes(segments);
    assert.deepEqual(checkTs(whole, { isSegment: true }).faults, []);
    assert.equal(await ffmpegComplaints(whole), "");

    const written = `${source}.out.ts`;
    await writeFile(written, whole);
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
  });
}

test("TsMuxer.segment makes the same bytes in any order", { skip, timeout: 60_000 }, async () => {
  const { tracks, packets } = await readPackets(
    await makeMedia("h264-aac.mp4", [...lavfi(12), ...CLIPS[0]!.args]),
  );
  const cuts = cutPackets(tracks, packets, 4);
  const forward = cuts.map((cut) => new TsMuxer(tracks).segment(cut));
  const muxer = new TsMuxer(tracks);
  const backward = cuts.map((cut) => muxer.segment(cut)).reverse();
  assert.deepEqual(forward, backward.reverse());
});
