import assert from "node:assert/strict";
import { test } from "node:test";
import { ALL_FORMATS, BufferSource, EncodedPacketSink, Input } from "mediabunny";
import { concatBytes } from "../../../src/base/bytes.ts";
import { nextUnit } from "../../../src/media/ts-units.ts";
import { AudioTranscoder } from "../../../src/remux/audio/transcoder.ts";
import { audioUnits, splitFrames } from "../../../src/remux/audio/ts-audio.ts";
import { BuiltinCodecs } from "../../../src/remux/codecs/builtin-codecs.ts";
import type { Media } from "../../../src/remux/contract.ts";
import { openMedia } from "../../../src/remux/open-media.ts";
import { StreamConverter } from "../../../src/remux/streams/stream-converter.ts";
import { readPiece } from "../../../src/remux/ts-interleave.ts";
import { readCodecProgram } from "../../../src/runtime/codec-scripts.ts";
import { fixture } from "../../parts/media-fixtures.ts";
import { memoryAccess } from "../media-checks.ts";
import { fmp4Segment, tsSegment } from "../segments.ts";

const CONVERSION = { all: true, mp3: false, ac3: false, isHls: true, channels: 2 } as const;
const signal = new AbortController().signal;
const transcoder = new AudioTranscoder(new BuiltinCodecs(readCodecProgram));
const latm = await fixture("latm.mpegts");
/** The raw AAC that the fixture contains in LATM. */
const expected = await rawAac(await fixture("front.mp4"));

async function rawAac(mp4: Uint8Array<ArrayBuffer>) {
  const input = new Input({ formats: ALL_FORMATS, source: new BufferSource(mp4) });
  const track = await input.getPrimaryAudioTrack();
  const frames: { seconds: number; data: Uint8Array }[] = [];
  for await (const { timestamp, data } of new EncodedPacketSink(track!).packets())
    frames.push({ seconds: timestamp, data });
  input.dispose();
  return frames;
}

/** Compares the ADTS frames of a transport stream with those of the source; their times have the same distances. */
function checkFrames(ts: Uint8Array, of = expected): void {
  const { packets, streams } = readPiece(ts);
  const audio = streams.filter(({ kind }) => kind === "audio");
  assert.deepEqual([audio.length, audio[0]!.codec], [1, "aac"]);
  const { own } = splitFrames([], audioUnits(packets, audio[0]!.pid));
  assert.equal(own.length, of.length);
  for (const [i, { data, ptsSeconds }] of own.entries()) {
    assert.deepEqual(data.subarray(7), of[i]!.data, `frame ${i}`);
    const moved = ptsSeconds - own[0]!.ptsSeconds - (of[i]!.seconds - of[0]!.seconds);
    assert.ok(Math.abs(moved) < 1e-4, `frame ${i} moved by ${moved} s`);
  }
}

async function segmentsOf(media: Media, make: typeof tsSegment, part?: { audio: number }) {
  const segments: Uint8Array<ArrayBuffer>[] = [];
  for (let i = media.segments.length - 1; i >= 0; i--)
    segments.unshift(await make(media, i, undefined, part));
  return segments;
}

test("openMedia, AAC in LATM: TS and fMP4 have each frame unchanged at its time, in any order of segments", async () => {
  const options = { targetSeconds: 2, audio: { conversion: CONVERSION } };
  const media = await openMedia(memoryAccess(latm), options, transcoder);
  const { codec, codecString, convertedFrom } = media.tracks[1]!;
  assert.deepEqual([codec, codecString, convertedFrom], ["aac", "mp4a.40.2", "aac_latm"]);
  assert.deepEqual([media.segments.length, media.silentIn], [3, []]);
  checkFrames(concatBytes(await segmentsOf(media, tsSegment)));
  checkFrames(concatBytes(await segmentsOf(media, tsSegment, { audio: 1 })));
  const mp4 = concatBytes([await media.fmp4Init(), ...(await segmentsOf(media, fmp4Segment))]);
  assert.deepEqual(
    (await rawAac(mp4)).map(({ data }) => data),
    expected.map(({ data }) => data),
  );
  media.close();
});

test("openMedia, AAC in LATM: without a request the stream is unchanged, and fMP4 says that it has no sound", async () => {
  const media = await openMedia(memoryAccess(latm), { targetSeconds: 2 }, transcoder);
  assert.deepEqual([media.tracks[1]!.codec, media.silentIn], ["aac_latm", ["fmp4"]]);
  assert.deepEqual(media.separateAudio.ts, []);
  const { streams } = readPiece(await tsSegment(media, 0));
  assert.deepEqual(
    streams.map(({ codec }) => codec),
    ["h264", "aac_latm"],
  );
  media.close();
});

test("openMedia, AAC in LATM: a form that ADTS cannot carry stays as it is, and fMP4 says that it has no sound", async () => {
  const bytes = latm.slice();
  // The number of subframes follows the start of each frame with a configuration.
  for (let at = 0; at + 6 < bytes.length; at++)
    if (bytes[at] === 0x56 && bytes[at + 1]! >> 5 === 7 && bytes[at + 3]! >> 5 === 1) bytes[at + 3]! |= 1;
  const media = await openMedia(memoryAccess(bytes), { audio: { conversion: CONVERSION } }, transcoder);
  assert.deepEqual([media.tracks[1]!.codec, media.silentIn], ["aac_latm", ["fmp4"]]);
  media.close();
});

/** The fixture in two segments that begin with a key frame, as a live stream delivers it. */
function liveSegments(): Uint8Array<ArrayBuffer>[] {
  const { streams } = readPiece(latm);
  const video = streams.find(({ kind }) => kind === "video")!;
  let at = 188;
  for (
    let unit = nextUnit(latm, latm.length >> 1, video);
    unit;
    unit = nextUnit(latm, unit.at + 188, video)
  ) {
    at = unit.at;
    if (unit.isKey) break;
  }
  const tables = latm.slice(188, 3 * 188); // PAT and PMT, after the SDT
  return [latm.slice(0, at), concatBytes([tables, latm.subarray(at)])];
}

test("StreamConverter, AAC in LATM: live segments have each frame once, also across their border", async () => {
  const converter = new StreamConverter({ transcoder, conversion: CONVERSION, choose: ([first]) => first });
  const segments = liveSegments();
  assert.equal(converter.needs(segments[0]!), true);
  const made: Uint8Array<ArrayBuffer>[] = [];
  for (const [i, segment] of segments.entries()) made.push(await converter.convert(i, segment, signal));
  for (const segment of made)
    assert.deepEqual(
      readPiece(segment).streams.map(({ codec }) => codec),
      ["h264", "aac"],
    );
  checkFrames(concatBytes(made));
});

test("StreamConverter, AAC in LATM: a player that joins in the middle has sound, and damage costs its frames only", async () => {
  const converter = new StreamConverter({ transcoder, conversion: CONVERSION, choose: ([first]) => first });
  const [, segment] = liveSegments();
  const { packets, streams } = readPiece(segment!);
  const { pid } = streams.find(({ kind }) => kind === "audio")!;
  const wholeFrames = framesOf(await converter.alone(5, segment!, signal));
  assert.ok(wholeFrames.length > 30);
  const damaged = packets.slice();
  const starts: number[] = [];
  for (let at = 0; at < damaged.length; at += 188)
    if ((((damaged[at + 1]! & 31) << 8) | damaged[at + 2]!) === pid) starts.push(at);
  damaged.fill(0xff, starts[3]! + 150, starts[3]! + 188);
  const frames = framesOf(await converter.alone(9, damaged, signal));
  assert.ok(frames.length >= wholeFrames.length - 3, `${frames.length} of ${wholeFrames.length} frames`);
});

function framesOf(ts: Uint8Array) {
  const { packets, streams } = readPiece(ts);
  return splitFrames([], audioUnits(packets, streams[0]!.pid)).own;
}
