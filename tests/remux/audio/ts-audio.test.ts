import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../../src/base/bytes.ts";
import { AudioTranscoder } from "../../../src/remux/audio/transcoder.ts";
import { audioUnits, splitFrames } from "../../../src/remux/audio/ts-audio.ts";
import { BuiltinCodecs } from "../../../src/remux/codecs/builtin-codecs.ts";
import { StreamConverter } from "../../../src/remux/streams/stream-converter.ts";
import { readPiece } from "../../../src/remux/ts-interleave.ts";
import { TsMuxer } from "../../../src/remux/ts-muxer.ts";
import { readCodecProgram } from "../../../src/runtime/codec-scripts.ts";
import { SYNTHETIC_TRACKS, syntheticPackets } from "../synthetic-ts.ts";
import { ac3Tone } from "./encoded-sound.ts";

const tone = await ac3Tone(1.3);
const signal = new AbortController().signal;
const conversion = { all: true, mp3: false, ac3: false, isHls: false, channels: 2 } as const;
const muxer = new TsMuxer([SYNTHETIC_TRACKS[0]!, { codec: "ac3", language: "eng", sampleRate: 48000 }]);

/** A segment of picture and AC-3 sound. */
function segment(from: number, to: number): Uint8Array<ArrayBuffer> {
  const video = syntheticPackets(to - from, from).filter(({ track }) => track === 0);
  const audio = tone.filter(({ ptsSeconds }) => ptsSeconds >= from && ptsSeconds < to);
  return muxer.segment([...video, ...audio.map((packet) => ({ ...packet, track: 1 }))]);
}

function audioOf(bytes: Uint8Array) {
  const { packets, streams } = readPiece(bytes);
  const stream = streams.find(({ kind }) => kind === "audio")!;
  return { codec: stream.codec, units: audioUnits(packets, stream.pid) };
}

test("splitFrames: returns every frame with its time, and those that end before the segment separately", () => {
  const [first, second] = [audioOf(segment(0, 0.6)), audioOf(segment(0.6, 1.2))];
  const { codec, before, own } = splitFrames(first.units, second.units);
  assert.equal(codec, "ac3");
  const frames = tone.filter(({ ptsSeconds }) => ptsSeconds < 1.2);
  assert.deepEqual(
    [...before, ...own].map(({ data }) => data),
    frames.map(({ data }) => data),
  );
  assert.equal(before.length, tone.filter(({ ptsSeconds }) => ptsSeconds < 0.6).length);
  for (const [i, frame] of [...before, ...own].entries())
    assert.ok(Math.abs(frame.ptsSeconds - frames[i]!.ptsSeconds) < 1e-4);
});

test("splitFrames: a frame of DTS-HD is a core frame and its extension", () => {
  const [core, extension] = [new Uint8Array(1024), new Uint8Array(64)];
  core.set([0x7f, 0xfe, 0x80, 0x01, 0xfc, 0x3c, 0x3f, 0xf0, 0xb6]);
  extension.set([0x64, 0x58, 0x20, 0x25, 0, 0x01, 0xe0, 0x07, 0xe0]);
  const bytes = concatBytes(Array(5).fill([core, extension]).flat());
  const { codec, own } = splitFrames([], [{ at: 0, pts: 900_000, bytes }]);
  assert.deepEqual([codec, own.length], ["dts", 5]);
  assert.ok(own.every(({ data }) => data.length === 1088));
  assert.ok(Math.abs(own[4]!.ptsSeconds - (4 * 512) / 48000) < 1e-9);
});

test("splitFrames: a frame across the border belongs to the segment of its last byte; damage is skipped", () => {
  const bytes = concatBytes(tone.slice(0, 10).map(({ data }) => data));
  const cut = tone[0]!.data.length * 4 + 100;
  const units = (from: number, to: number, pts: number | undefined) => [
    { at: 0, pts, bytes: bytes.subarray(from, to) },
  ];
  const split = splitFrames(units(0, cut, 900_000), units(cut, bytes.length, undefined));
  assert.deepEqual([split.before.length, split.own.length], [4, 6]);
  assert.ok(Math.abs(split.own[0]!.ptsSeconds - 4 * 0.032) < 1e-9);
  const damaged = bytes.slice();
  damaged.fill(0, cut - 100, cut);
  assert.equal(
    splitFrames(
      [],
      units(cut - 5, bytes.length, 0).map((unit) => ({ ...unit, bytes: damaged })),
    ).own.length,
    9,
  );
  assert.deepEqual(splitFrames([], []).own, []);
});

test("StreamConverter: the segments of a stream get AAC without gaps; a stream with AAC stays", async () => {
  const transcoder = new AudioTranscoder(new BuiltinCodecs(readCodecProgram));
  const converter = new StreamConverter({ transcoder, conversion, choose: ([first]) => first });
  const segments = [segment(0, 0.4), segment(0.4, 0.8), segment(0.8, 1.2)];
  assert.equal(converter.needs(segments[0]!), true);
  const units = [];
  for (const [index, bytes] of segments.entries()) {
    const out = audioOf(await converter.convert(index, bytes, signal));
    assert.equal(out.codec, "aac");
    units.push(...out.units);
  }
  const { codec, own } = splitFrames([], units);
  assert.equal(codec, "aac");
  for (const [i, { ptsSeconds }] of own.entries())
    assert.ok(Math.abs(ptsSeconds - own[0]!.ptsSeconds - (i * 1024) / 48000) < 1e-4, String(i));
  const aac = new TsMuxer(SYNTHETIC_TRACKS).segment(syntheticPackets(0.4));
  assert.equal(converter.needs(aac), false);
  assert.equal(await converter.convert(9, aac, signal), aac);
});
