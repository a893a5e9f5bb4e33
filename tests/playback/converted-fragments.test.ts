import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import { parseInfohash } from "../../src/base/ids.ts";
import { buildFragment } from "../../src/media/mp4-fragment.ts";
import type { PlaybackRequest } from "../../src/playback/contract.ts";
import { ConvertedSources } from "../../src/playback/converted-source.ts";
import { AudioTranscoder } from "../../src/remux/audio/transcoder.ts";
import { BuiltinCodecs } from "../../src/remux/codecs/builtin-codecs.ts";
import { Fmp4Writer } from "../../src/remux/fmp4-writer.ts";
import type { SourceTrack } from "../../src/remux/media-tracks.ts";
import { FragmentedStream } from "../../src/remux/streams/fragmented-segments.ts";
import type { TsMuxPacket } from "../../src/remux/ts-mux-input.ts";
import { readCodecProgram } from "../../src/runtime/codec-scripts.ts";
import {
  type SegmentSource,
  type SHARED_MANIFEST_URLS,
  sessionManifestUrls,
} from "../../src/transfer/segment-source.ts";
import { ac3Tone } from "../remux/audio/encoded-sound.ts";

const signal = new AbortController().signal;
const place = {
  urls: sessionManifestUrls("http://a", { infohash: parseInfohash("a".repeat(40))!, key: "k", ordinal: 0 }),
};
const CONVERSION = { all: true, mp3: false, ac3: false, isHls: true, channels: 2 } as const;
const FRAMES = 20;
const COUNT = 4;
const tone = await ac3Tone(FRAMES * COUNT * 0.032);
const init = await audioInit();

/** The initialization segment of an AC-3 track with the number 1. */
async function audioInit(): Promise<Uint8Array<ArrayBuffer>> {
  const track = {
    described: { kind: "audio", codec: "ac3", codecString: "ac-3", language: "eng", isDefault: true },
    ...{ kind: "audio", id: 1, libraryCodec: "ac3", config: undefined, sampleRate: 48000 },
    decoderConfig: { codec: "ac-3", sampleRate: 48000, numberOfChannels: 2 },
  } as unknown as SourceTrack;
  const reader = { first: async () => tone[0]!, reordering: async () => ({ seconds: 0, frames: 0 }) };
  return new Fmp4Writer(reader, [track]).init();
}

function audioSegment(index: number): Uint8Array<ArrayBuffer> {
  const samples = tone.slice(index * FRAMES, (index + 1) * FRAMES).map(({ data }) => ({
    ...{ data, duration: 1536, isSync: true, compositionOffset: 0 },
  }));
  return buildFragment(index + 1, [{ id: 1, decodeTime: 1_000_000 * 1536 + index * FRAMES * 1536, samples }]);
}

/** A stream of an AC-3 track without picture; counts the requests. */
function soundSource(asked: string[] = []): SegmentSource {
  const source: Partial<SegmentSource> = {
    container: "fmp4",
    isLive: false,
    name: "stream",
    manifest: async ({ urls }) =>
      [
        "#EXTM3U",
        "#EXT-X-TARGETDURATION:1",
        `#EXT-X-MAP:URI="${urls.segment(0, "mp4")}"`,
        ...Array.from({ length: COUNT }, (_, i) => `#EXTINF:0.64,\n${urls.segment(i, "m4s")}`),
        "#EXT-X-ENDLIST\n",
      ].join("\n"),
    first: async () => 0,
    reach: async (index) => (index < COUNT ? index : undefined),
    find: async (_, number) => number,
    make: async (kind, index) => {
      asked.push(`${index}.${kind}`);
      if (index < 0 || index >= COUNT) throw new SluiceError("no_such_segment", "no such segment");
      return kind === "mp4" ? init : audioSegment(index);
    },
  };
  return source as SegmentSource;
}

function open(source: SegmentSource): Promise<SegmentSource> {
  const transcoder = new AudioTranscoder(new BuiltinCodecs(readCodecProgram));
  const request = {
    output: "hls",
    container: "auto",
    audioConversion: CONVERSION,
  } as unknown as PlaybackRequest;
  return new ConvertedSources(transcoder).of(source, request, signal);
}

/** The frames of a converted segment. */
async function framesOf(source: SegmentSource, index: number): Promise<TsMuxPacket[]> {
  const [head, segment] = [
    await source.make("mp4", index, 0, signal),
    await source.make("m4s", index, 0, signal),
  ];
  const stream = await FragmentedStream.open(head, segment, "und");
  assert.equal(stream.tracks[0]!.described.codec, "aac");
  return stream.packets(segment, stream.tracks[0]!.id);
}

test("ConvertedFragments: AC-3 in fragmented MP4 becomes AAC at the times of the stream, without gaps", async () => {
  const source = await open(soundSource());
  const frames: TsMuxPacket[] = [];
  for (let index = 0; index < COUNT; index++) frames.push(...(await framesOf(source, index)));
  const start = (1_000_000 * 1536) / 48000;
  assert.ok(Math.abs(frames[0]!.ptsSeconds - start) < 2048 / 48000, String(frames[0]!.ptsSeconds));
  for (const [i, { ptsSeconds }] of frames.entries())
    assert.ok(Math.abs(ptsSeconds - frames[0]!.ptsSeconds - (i * 1024) / 48000) < 1e-6, String(i));
  const end = frames.at(-1)!.ptsSeconds + 1024 / 48000;
  assert.ok(end >= start + COUNT * FRAMES * 0.032, `the last segment ends at ${end - start}`);
});

test("ConvertedFragments: segments are the same bytes in every order of requests", async () => {
  const [forwards, backwards] = [await open(soundSource()), await open(soundSource())];
  const made: Uint8Array[] = [];
  for (let index = 0; index < COUNT; index++) made.push(await forwards.make("m4s", index, 0, signal));
  for (let index = COUNT - 1; index >= 0; index--)
    assert.deepEqual(await backwards.make("m4s", index, 0, signal), made[index], String(index));
});

test("ConvertedFragments: a player in order fetches each segment of the server once", async () => {
  const asked: string[] = [];
  const source = await open(soundSource(asked));
  for (let index = 0; index < COUNT; index++) await source.make("m4s", index, 0, signal);
  const segments = asked.filter((name) => name.endsWith("m4s"));
  assert.equal(new Set(segments).size, segments.length, asked.join());
});

test("ConvertedFragments: a separate audio playlist is listed converted and as it is", async () => {
  const picture = soundSource();
  const master = (urls: typeof SHARED_MANIFEST_URLS) =>
    [
      "#EXTM3U",
      `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="English",LANGUAGE="en",DEFAULT=YES,URI="${urls.manifest}?audio=1"`,
      '#EXT-X-STREAM-INF:BANDWIDTH=9,CODECS="avc1.64001f,ac-3",AUDIO="audio"',
      `${urls.manifest}?rendition=media\n`,
    ].join("\n");
  const video = await videoInit();
  const source: SegmentSource = {
    ...picture,
    manifest: async (at, rendition) => {
      if (rendition === "main") return master(at.urls);
      const text = await picture.manifest(at, "media", signal);
      return typeof rendition === "object" ? text.replace(/(\d+)\.(m4s|mp4)/g, "$1.a1.$2") : text;
    },
    make: (kind, index, track, stop) =>
      track === 0 && kind === "mp4" ? Promise.resolve(video) : picture.make(kind, index, 0, stop),
  };
  const converted = await open(source);
  const text = await converted.manifest(place, "main", signal);
  const variants = text.split("\n").filter((line) => line.startsWith("#EXT-X-STREAM-INF"));
  assert.match(variants[0]!, /CODECS="avc1\.\w+,mp4a\.40\.2".*AUDIO="requested"/);
  assert.match(variants[1]!, /CODECS="avc1\.\w+,ac-3".*AUDIO="original"/);
  assert.match(text, /GROUP-ID="original",NAME="English",LANGUAGE="en"[^\n]*audio=501"/);
  const original = await converted.manifest(place, { audio: 501 }, signal);
  assert.match(original, /URI="http:[^"]*\/0\.a501\.mp4"/);
  assert.match(original, /\/3\.a501\.m4s$/m);
  assert.deepEqual(await converted.make("m4s", 2, 501, signal), audioSegment(2));
  const aac = await converted.make("m4s", 2, 1, signal);
  assert.notDeepEqual(aac, audioSegment(2));
  await assert.rejects(converted.manifest(place, { audio: 7 }, signal), /no separate audio 7/);
});

/** The initialization segment of H.264 video. */
async function videoInit(): Promise<Uint8Array<ArrayBuffer>> {
  const description = Uint8Array.from([
    ...[1, 0x64, 0, 0x1f, 0xff, 0xe1, 0, 10, 0x67, 0x64, 0, 0x1f, 0xac, 0xb2, 0x02, 0x80, 0x2d, 0xc8],
    ...[1, 0, 4, 0x68, 0xeb, 0x8f, 0x2c, 0xfd, 0xf8, 0xf8, 0],
  ]);
  const track = {
    described: { kind: "video", codec: "h264", codecString: "avc1.64001f", language: "und", isDefault: true },
    ...{ kind: "video", id: 1, libraryCodec: "avc", config: description, sampleRate: undefined },
    decoderConfig: { codec: "avc1.64001f", codedWidth: 1280, codedHeight: 720, description },
  } as unknown as SourceTrack;
  const first = { track: 0, ptsSeconds: 0, durationSeconds: 0.04, isKey: true, data: new Uint8Array(8) };
  const reader = { first: async () => first, reordering: async () => ({ seconds: 0, frames: 0 }) };
  return new Fmp4Writer(reader, [track]).init();
}
