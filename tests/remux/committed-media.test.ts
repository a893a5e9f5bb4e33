import assert from "node:assert/strict";
import { test } from "node:test";
import { ALL_FORMATS, BufferSource, EncodedPacketSink, Input } from "mediabunny";
import { concatBytes } from "../../src/base/bytes.ts";
import { annexBNals } from "../../src/media/nal.ts";
import type { Media } from "../../src/remux/contract.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { memoryAccess } from "./media-checks.ts";
import { fmp4Segment, tsSegment } from "./segments.ts";
import { checkTs } from "./ts-checker.ts";

/** What each file holds: its tracks, the frames of each as ffprobe counts them, and the lengths of segments of 2 s. */
const FILES: Record<string, { tracks: string; frames: readonly number[]; segments: readonly number[] }> = {
  "front.mp4": { tracks: "h264 und, aac und", frames: [150, 95], segments: [2, 2, 2] },
  "end.mp4": { tracks: "h264 und, aac und", frames: [150, 95], segments: [2, 2, 2] },
  "fragments.mp4": { tracks: "h264 und, aac und", frames: [150, 95], segments: [2, 2, 2] },
  "sidx.mp4": { tracks: "h264 und, aac und", frames: [150, 95], segments: [2, 2, 2] },
  "ac3.mkv": { tracks: "h264 und, ac3 und", frames: [150, 125], segments: [2, 2, 2] },
  "streamed.mkv": { tracks: "h264 und, aac und", frames: [150, 95], segments: [2, 2, 2.064] },
  "hevc.mkv": { tracks: "hevc und, aac eng, aac ger", frames: [150, 95, 95], segments: [2, 2, 2] },
  "clip.mpegts": { tracks: "h264 und, aac und", frames: [300, 189], segments: [2, 2, 2, 2, 2, 2] },
  "hevc.mpegts": { tracks: "hevc und, eac3 und", frames: [100, 84], segments: [4] },
  "vp9.webm": { tracks: "vp9 und, opus und", frames: [150, 301], segments: [2, 2, 2.001] },
};
/** Media that only one of the two output formats carries. */
const NOT_IN_TS = ["vp9.webm"];
const NOT_IN_FMP4 = ["hevc.mpegts"];
const TOLERANCE_SECONDS = 0.001;
/** WebM counts in milliseconds, Opus in samples. */
const WEBM_TOLERANCE_SECONDS = 0.003;

/** A frame of a track: its time in seconds, its size in bytes, and if it is a keyframe. */
interface Frame {
  readonly seconds: number;
  readonly bytes: Uint8Array;
  readonly isKey: boolean;
}

/** The frames of each track, read by mediabunny. */
async function framesOf(bytes: Uint8Array): Promise<Frame[][]> {
  const input = new Input({ formats: ALL_FORMATS, source: new BufferSource(bytes) });
  const tracks: Frame[][] = [];
  for (const track of await input.getTracks()) {
    const frames: Frame[] = [];
    for await (const { timestamp, data, type } of new EncodedPacketSink(track).packets())
      frames.push({ seconds: timestamp, bytes: data, isKey: type === "key" });
    tracks.push(frames);
  }
  input.dispose();
  return tracks;
}

async function wholeOf(media: Media, kind: "ts" | "fmp4"): Promise<Uint8Array> {
  const parts = kind === "ts" ? [] : [await media.fmp4Init()];
  for (let i = 0; i < media.segments.length; i++)
    parts.push(await (kind === "ts" ? tsSegment(media, i) : fmp4Segment(media, i)));
  return concatBytes(parts);
}

/** The pictures of a frame without the parameter sets and delimiters that containers add: its NAL units with slices. */
function slicesOf(frame: Uint8Array, codec: string, isAnnexB: boolean): Uint8Array[] {
  const units: Uint8Array[] = [];
  if (isAnnexB) for (const { start, end } of annexBNals(frame)) units.push(frame.subarray(start, end));
  else
    for (let at = 0; at < frame.length; ) {
      const length = new DataView(frame.buffer, frame.byteOffset).getUint32(at);
      units.push(frame.subarray(at + 4, at + 4 + length));
      at += 4 + length;
    }
  const isSlice = (first: number) =>
    codec === "h264" ? [1, 5].includes(first & 31) : ((first >> 1) & 63) < 32;
  return units.filter((unit) => isSlice(unit[0]!));
}

/** The coded media of a frame, however its container wraps it. */
function payloadOf(frame: Uint8Array, codec: string, isTs: boolean): Uint8Array {
  if (codec === "h264" || codec === "hevc") return concatBytes(slicesOf(frame, codec, isTs));
  return codec === "aac" && isTs ? frame.subarray(7) : frame; // without the head of ADTS
}

for (const [name, expected] of Object.entries(FILES)) {
  const toleranceSeconds = name.endsWith(".webm") ? WEBM_TOLERANCE_SECONDS : TOLERANCE_SECONDS;
  const isTsSource = name.endsWith(".mpegts");

  test(`openMedia ${name}: tracks, segments and what it cannot become`, async () => {
    const media = await openMedia(memoryAccess(await fixture(name)), { targetSeconds: 2 });
    assert.equal(
      media.tracks.map(({ codec, language }) => `${codec} ${language}`).join(", "),
      expected.tracks,
    );
    assert.deepEqual(
      media.segments.map(({ durationSeconds }) => Math.round(1000 * durationSeconds) / 1000),
      expected.segments,
    );
    assert.equal(media.tsProblem === undefined, !NOT_IN_TS.includes(name));
    assert.equal(media.fmp4Problem === undefined, !NOT_IN_FMP4.includes(name));
    media.close();
  });

  for (const kind of ["ts", "fmp4"] as const) {
    if ((kind === "ts" ? NOT_IN_TS : NOT_IN_FMP4).includes(name)) continue;
    test(`Media ${name} as ${kind}: every frame of the source, at its time, in any order of segments`, async () => {
      const bytes = await fixture(name);
      const source = await framesOf(bytes);
      assert.deepEqual(
        source.map((frames) => frames.length),
        expected.frames,
      );
      const media = await openMedia(memoryAccess(bytes), { targetSeconds: 2 });
      const whole = await wholeOf(media, kind);
      if (kind === "ts") assert.deepEqual(checkTs(whole, { isPassThrough: isTsSource }).faults, []);
      const output = await framesOf(whole);
      // fMP4 has one track of each kind.
      assert.equal(output.length, kind === "ts" ? source.length : 2);
      const shift = output[0]![0]!.seconds - source[0]![0]!.seconds;
      assert.ok(Math.abs(shift - (isTsSource ? 0 : 10)) < TOLERANCE_SECONDS, `shifted by ${shift} s`);
      for (const [track, frames] of output.entries()) {
        const { codec } = media.tracks[track]!;
        assert.equal(frames.length, source[track]!.length);
        for (const [i, frame] of frames.entries()) {
          const was = source[track]![i]!;
          const moved = frame.seconds - was.seconds - shift;
          assert.ok(Math.abs(moved) < toleranceSeconds, `track ${track} frame ${i}: moved by ${moved} s`);
          assert.equal(frame.isKey, was.isKey, `track ${track} frame ${i}`);
          assert.deepEqual(
            payloadOf(frame.bytes, codec, kind === "ts"),
            payloadOf(was.bytes, codec, isTsSource),
            `track ${track} frame ${i}`,
          );
        }
      }
      const other = await openMedia(memoryAccess(bytes), { targetSeconds: 2 });
      const backwards: Uint8Array[] = [];
      for (let i = other.segments.length - 1; i >= 0; i--)
        backwards.unshift(await (kind === "ts" ? tsSegment(other, i) : fmp4Segment(other, i)));
      if (kind === "fmp4") backwards.unshift(await other.fmp4Init());
      assert.deepEqual(concatBytes(backwards), whole);
      media.close();
      other.close();
    });
  }
}
