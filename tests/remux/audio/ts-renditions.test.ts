import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../../src/base/bytes.ts";
import { AudioTranscoder } from "../../../src/remux/audio/transcoder.ts";
import { audioUnits, splitFrames } from "../../../src/remux/audio/ts-audio.ts";
import { BuiltinCodecs } from "../../../src/remux/codecs/builtin-codecs.ts";
import type { AudioConversion, Media, MediaPart } from "../../../src/remux/contract.ts";
import { openTsFile } from "../../../src/remux/ts-file.ts";
import { readPiece } from "../../../src/remux/ts-interleave.ts";
import { TsMuxer } from "../../../src/remux/ts-muxer.ts";
import { readCodecProgram } from "../../../src/runtime/codec-scripts.ts";
import { memoryAccess } from "../media-checks.ts";
import { tsSegment } from "../segments.ts";
import { SYNTHETIC_TRACKS, syntheticPackets } from "../synthetic-ts.ts";
import { checkTs } from "../ts-checker.ts";
import { ac3Tone } from "./encoded-sound.ts";

const CONVERSION: AudioConversion = { all: true, mp3: false, ac3: false, isHls: true, channels: 2 };
const SECONDS = 2.88;
const tone = await ac3Tone(SECONDS);
const transcoder = new AudioTranscoder(new BuiltinCodecs(readCodecProgram));
const packets = syntheticPackets(SECONDS);
const [video, aac] = SYNTHETIC_TRACKS;
const TRACKS = [video!, { codec: "ac3", language: "ger", sampleRate: 48000 }, aac!] as const;
const FILE = new TsMuxer(TRACKS).segment([
  ...packets.filter(({ track }) => track === 0),
  ...tone.map((packet) => ({ ...packet, track: 1 })),
  ...packets.filter(({ track }) => track === 1).map((packet) => ({ ...packet, track: 2 })),
]);

function open(conversion?: AudioConversion): Promise<Media> {
  return openTsFile(memoryAccess(FILE), { targetSeconds: 1, audio: { conversion } }, undefined, transcoder);
}

/** The segments of a part, made from the last to the first. */
async function segmentsOf(media: Media, part: MediaPart): Promise<Uint8Array<ArrayBuffer>[]> {
  const segments: Uint8Array<ArrayBuffer>[] = [];
  for (let index = media.segments.length - 1; index >= 0; index--)
    segments.unshift(await tsSegment(media, index, undefined, part));
  return segments;
}

function framesOf(segments: readonly Uint8Array[]) {
  const { packets: all, streams } = readPiece(concatBytes(segments));
  assert.deepEqual([streams.length, streams[0]!.kind], [1, "audio"]);
  return { ...splitFrames([], audioUnits(all, streams[0]!.pid)), language: streams[0]!.language };
}

test("openTsFile: the picture and each audio track can be delivered apart; the whole has all of them", async () => {
  const media = await open();
  assert.deepEqual(media.separateAudio, { ts: [1, 2], fmp4: [] });
  assert.ok(media.segments.length >= 2);
  const picture = await segmentsOf(media, "video");
  for (const segment of picture)
    assert.deepEqual(
      readPiece(segment).streams.map(({ codec }) => codec),
      ["h264"],
    );
  assert.deepEqual(checkTs(concatBytes(picture), { isPassThrough: true }).faults, []);
  const { codec, own, language } = framesOf(await segmentsOf(media, { audio: 1 }));
  assert.deepEqual([codec, language], ["ac3", "ger"]);
  assert.deepEqual(
    own.map(({ data }) => data),
    tone.map(({ data }) => data),
  );
  assert.equal(framesOf(await segmentsOf(media, { audio: 2 })).codec, "aac");
  await assert.rejects(tsSegment(media, 0, undefined, { audio: 0 }), /no such track/);
});

test("openTsFile conversion: each audio track that players request apart is AAC without gaps, at its own time", async () => {
  const media = await open(CONVERSION);
  assert.deepEqual(
    media.tracks.map(({ codec, convertedFrom }) => [codec, convertedFrom]),
    [
      ["h264", undefined],
      ["aac", "ac3"],
      ["aac", undefined],
    ],
  );
  const segments = await segmentsOf(media, { audio: 1 });
  assert.deepEqual(await segmentsOf(media, { audio: 1 }), segments);
  const { codec, own, language } = framesOf(segments);
  assert.deepEqual([codec, language], ["aac", "ger"]);
  for (const [i, { ptsSeconds }] of own.entries())
    assert.ok(Math.abs(ptsSeconds - own[0]!.ptsSeconds - (i * 1024) / 48000) < 1e-4, String(i));
  assert.ok(
    Math.abs(own[0]!.ptsSeconds + 1024 / 48000) < 1e-4,
    "one frame of priming before the first sample",
  );
  assert.ok(own.length >= (tone.length * 1536) / 1024);
  const whole = readPiece(await tsSegment(media, 0)).streams;
  assert.deepEqual(
    whole.map((stream) => stream.codec),
    ["h264", "aac"],
  );
});
