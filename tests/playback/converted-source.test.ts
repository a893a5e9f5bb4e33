import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import { parseInfohash } from "../../src/base/ids.ts";
import { buildPmt, packetsOfSection } from "../../src/media/psi.ts";
import { pidAt, TS_PACKET_BYTES } from "../../src/media/ts-packet.ts";
import type { PlaybackRequest } from "../../src/playback/contract.ts";
import { ConvertedSources } from "../../src/playback/converted-source.ts";
import { openStreamAudio } from "../../src/playback/stream-audio.ts";
import { AudioTranscoder } from "../../src/remux/audio/transcoder.ts";
import { audioUnits, splitFrames } from "../../src/remux/audio/ts-audio.ts";
import { BuiltinCodecs } from "../../src/remux/codecs/builtin-codecs.ts";
import type { AudioConversion } from "../../src/remux/contract.ts";
import { readPiece } from "../../src/remux/ts-interleave.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";
import { readCodecProgram } from "../../src/runtime/codec-scripts.ts";
import {
  type ManifestRendition,
  type SegmentSource,
  sessionManifestUrls,
} from "../../src/transfer/segment-source.ts";
import { ac3Tone } from "../remux/audio/encoded-sound.ts";
import { SYNTHETIC_TRACKS, syntheticPackets } from "../remux/synthetic-ts.ts";

const signal = new AbortController().signal;
const place = {
  urls: sessionManifestUrls("http://a", { infohash: parseInfohash("a".repeat(40))!, key: "k", ordinal: 0 }),
};
const transcoder = new AudioTranscoder(new BuiltinCodecs(readCodecProgram));
const SEGMENT_SECONDS = 0.48;
const COUNT = 3;
const tone = await ac3Tone(SEGMENT_SECONDS * COUNT);
const muxer = new TsMuxer([SYNTHETIC_TRACKS[0]!, { codec: "ac3", language: "eng", sampleRate: 48000 }]);

function segment(index: number): Uint8Array<ArrayBuffer> {
  const [from, to] = [index * SEGMENT_SECONDS, (index + 1) * SEGMENT_SECONDS];
  const video = syntheticPackets(SEGMENT_SECONDS, from).filter(({ track }) => track === 0);
  const audio = tone.filter(({ ptsSeconds }) => ptsSeconds >= from && ptsSeconds < to);
  return muxer.segment([...video, ...audio.map((packet) => ({ ...packet, track: 1 }))]);
}

/** A live stream with parts; counts how often a segment is read. */
function liveSource(reads: number[] = []): SegmentSource {
  const manifest = [
    "#EXTM3U",
    "#EXT-X-PART-INF:PART-TARGET=0.2",
    ...Array.from({ length: COUNT }, (_, i) => `#EXTINF:${SEGMENT_SECONDS},\nhttp://a/ace/c/h/${i}.ts`),
    '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="http://a/ace/c/h/3.p0.ts"\n',
  ].join("\n");
  const source: Partial<SegmentSource> = {
    container: "ts",
    isLive: true,
    name: "stream",
    manifest: async () => manifest,
    first: async () => COUNT - 1,
    find: async (_, number, __, track) => number + 1000 * (track ?? 0),
    make: async (_, index) => {
      if (index < 0) throw new SluiceError("no_such_segment", "it has left the window");
      reads.push(index);
      return segment(index);
    },
    live: { cursor: () => ({ next: async () => segment(0) }) } as never,
  };
  return source as SegmentSource;
}

function request(conversion: object | undefined, output: "hls" | "ts" = "hls"): PlaybackRequest {
  return { output, container: "auto", audioLanguage: undefined, audioConversion: conversion } as never;
}

const ALL = { all: true, mp3: false, ac3: false, isHls: true, channels: 2 } as const;

test("ConvertedSources: a live stream with AC-3 has a variant with AAC and one with its own audio", async () => {
  const reads: number[] = [];
  const source = await new ConvertedSources(transcoder).of(liveSource(reads), request(ALL), signal);
  const master = await source.manifest(place, "main", signal);
  const variants = master.split("\n").filter((line) => line.startsWith("#EXT-X-STREAM-INF"));
  const seen = variants.map((line) => [
    /CODECS="([^"]*)"/.exec(line)?.[1],
    /AUDIO="([^"]*)"/.exec(line)?.[1],
  ]);
  assert.deepEqual(seen, [
    ["avc1.64000c,mp4a.40.2", "requested"],
    ["avc1.64000c,ac-3", "original"],
  ]);
  assert.match(master, /GROUP-ID="requested",NAME="English",LANGUAGE="en",DEFAULT=YES[^\n]*audio=1"/);
  assert.match(master, /GROUP-ID="original"[^\n]*audio=501"/);
  assert.doesNotMatch(await source.manifest(place, "media", signal), /PART|a1\.ts/);
  const audio: ManifestRendition = { audio: 501 };
  assert.match(await source.manifest(place, audio, signal), /\/0\.a501\.ts\n.*\/2\.a501\.ts\n/s);
  await assert.rejects(source.manifest(place, { audio: 7 }, signal), /no separate audio 7/);
  assert.equal(await source.find("ts", 1, signal, 501), 1, "the source has one track");
});

test("ConvertedSources: HLS players can choose between two languages, also if the first or none has to be converted", async () => {
  const [picture, english, german] = ["", "eng", "ger"].map((language, i) => ({
    ...SYNTHETIC_TRACKS[Math.min(i, 1)]!,
    ...(i > 0 && { language }),
  }));
  const sources = new ConvertedSources(transcoder);
  for (const [second, codecs] of [
    [german!, ["avc1.64000c,mp4a.40.2"]],
    [
      { codec: "ac3", language: "ger", sampleRate: 48000 },
      ["avc1.64000c,mp4a.40.2", "avc1.64000c,mp4a.40.2,ac-3"],
    ],
  ] as const) {
    const packets = syntheticPackets(SEGMENT_SECONDS);
    const sound = second.codec === "ac3" ? tone.slice(0, 15) : packets.filter(({ track }) => track === 1);
    const bytes = new TsMuxer([picture!, english!, second as never]).segment([
      ...packets,
      ...sound.map((packet) => ({ ...packet, track: 2 })),
    ]);
    const live = { cursor: () => ({ next: async () => bytes }) } as never;
    const make = async (_: unknown, index: number) => {
      if (index < 0) throw new SluiceError("no_such_segment", "it has left the window");
      return bytes;
    };
    const original = { ...liveSource(), live, make };
    const source = await sources.of(original, request(ALL), signal);
    const master = await source.manifest(place, "main", signal);
    assert.deepEqual(
      [...master.matchAll(/CODECS="([^"]*)"/g)].map(([, names]) => names),
      codecs,
    );
    assert.match(master, /GROUP-ID="requested",NAME="English"[^\n]*audio=1"/);
    assert.match(master, /GROUP-ID="requested",NAME="German"[^\n]*audio=2"/);
    const { streams } = readPiece(await source.make("ts", 0, 2, signal));
    assert.deepEqual(
      streams.map(({ codec, language }) => [codec, language]),
      [["aac", "ger"]],
    );
  }
});

test("openStreamAudio: two languages of AAC in LATM are renditions; one is in the segments of the picture", () => {
  const options = { transcoder, conversion: ALL, language: "und" };
  const two = openStreamAudio(latmSegment(["eng", "ger"]), 1, options)!.master(place);
  assert.equal(two.match(/#EXT-X-STREAM-INF/g)?.length, 1);
  assert.match(two, /CODECS="avc1\.64000c,mp4a\.40\.2"[^\n]*AUDIO="requested"/);
  assert.match(two, /NAME="English"[^\n]*audio=1"\n.*NAME="German"[^\n]*audio=2"/);
  assert.doesNotMatch(two, /original/);
  assert.equal(openStreamAudio(latmSegment(["eng"]), 1, options), undefined);
});

/** A segment of picture and AAC, whose tables name it LATM. */
function latmSegment(languages: readonly string[]): Uint8Array<ArrayBuffer> {
  const packets = syntheticPackets(SEGMENT_SECONDS);
  const tracks = languages.map((language) => ({ ...SYNTHETIC_TRACKS[1]!, language }));
  const sounds = languages.flatMap((_, i) =>
    packets.filter(({ track }) => track === 1).map((packet) => ({ ...packet, track: i + 1 })),
  );
  const bytes = new TsMuxer([SYNTHETIC_TRACKS[0]!, ...tracks]).segment([
    ...packets.filter(({ track }) => track === 0),
    ...sounds,
  ]);
  const { pmt, pmtPid } = readPiece(bytes).tables;
  const streams = pmt.streams.map((own) => (own.streamType === 0x0f ? { ...own, streamType: 0x11 } : own));
  const section = buildPmt({ ...pmt, streams });
  for (let at = 0; at < bytes.length; at += TS_PACKET_BYTES)
    if (pidAt(bytes, at) === pmtPid) bytes.set(packetsOfSection(section, pmtPid), at);
  return bytes;
}

test("ConvertedSources: picture, AAC and original audio of a segment come from one read of it, and continue without gaps", async () => {
  const reads: number[] = [];
  const source = await new ConvertedSources(transcoder).of(liveSource(reads), request(ALL), signal);
  const units = { 1: [] as Uint8Array[], 501: [] as Uint8Array[] };
  for (let index = 0; index < COUNT; index++) {
    const picture = readPiece(await source.make("ts", index, 0, signal));
    assert.deepEqual(
      picture.streams.map(({ kind }) => kind),
      ["video"],
    );
    for (const track of [1, 501] as const) units[track].push(await source.make("ts", index, track, signal));
  }
  assert.deepEqual(reads.sort(), [0, 1, 2]);
  const framesOf = (segments: Uint8Array[]) => {
    const all = segments
      .map(readPiece)
      .flatMap(({ packets, streams }) => audioUnits(packets, streams[0]!.pid));
    return splitFrames([], all);
  };
  assert.deepEqual(
    framesOf(units[501]).own.map(({ data }) => data),
    tone.map(({ data }) => data),
  );
  const { codec, own } = framesOf(units[1]);
  assert.equal(codec, "aac");
  for (const [i, { ptsSeconds }] of own.entries())
    assert.ok(Math.abs(ptsSeconds - own[0]!.ptsSeconds - (i * 1024) / 48000) < 1e-4, String(i));
});

test("ConvertedSources: continuous streams get AAC in place of AC-3; without a request the stream is unchanged", async () => {
  const sources = new ConvertedSources(transcoder);
  const original = liveSource();
  assert.equal(await sources.of(original, request(undefined, "ts"), signal), original);
  const converted = await sources.of(original, request({ ...ALL, isHls: false }, "ts"), signal);
  const { streams } = readPiece(await converted.make("ts", 1, 0, signal));
  assert.deepEqual(
    streams.map(({ codec }) => codec),
    ["h264", "aac"],
  );
});

test("ConvertedSources: CODECS names as AAC only what the request converts, and names and addresses stay", async () => {
  const master = [
    "#EXTM3U",
    '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="mp3",DEFAULT=YES,URI="http://a/k.m3u8?audio=1"',
    '#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="avc1.64001f,mp4a.40.34, ec-3,mp4a.40.33",AUDIO="audio"',
    "http://a/mp3,ac-3\n",
  ].join("\n");
  const { live: _, ...rest } = liveSource();
  const source = { ...rest, manifest: async () => master } as SegmentSource;
  const codecsOf = async (conversion: AudioConversion) => {
    const converted = await new ConvertedSources(transcoder).of(source, request(conversion), signal);
    const manifest = await converted.manifest(place, "main", signal);
    assert.match(manifest, /NAME="mp3"/);
    assert.match(manifest, /^http:\/\/a\/mp3,ac-3$/m);
    return /CODECS="([^"]*)"/.exec(manifest)![1];
  };
  const AAC = "mp4a.40.2";
  assert.equal(await codecsOf({ ...ALL, all: false, ac3: true }), `avc1.64001f,mp4a.40.34,${AAC},mp4a.40.33`);
  assert.equal(await codecsOf({ ...ALL, all: false, mp3: true }), `avc1.64001f,${AAC},ec-3,${AAC}`);
  assert.equal(await codecsOf(ALL), `avc1.64001f,${AAC},${AAC},${AAC}`);
});

test("ConvertedSources: a stream of another server with separate audio has both variants too", async () => {
  const master = [
    "#EXTM3U",
    '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="English",DEFAULT=YES,URI="http://a/k.m3u8?audio=1"',
    '#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="avc1.64001f,ac-3",AUDIO="audio"',
    "http://a/k.m3u8?rendition=media\n",
  ].join("\n");
  const { live: _, ...rest } = liveSource();
  const manifest: SegmentSource["manifest"] = async (_, rendition) => {
    if (typeof rendition === "string") return master;
    assert.deepEqual(rendition, { audio: 1 }, "the source numbers its own audio");
    return "#EXTM3U\n#EXTINF:4,\nhttp://a/ace/c/h/12.a1.ts\n";
  };
  const source = { ...rest, manifest } as SegmentSource;
  const converted = await new ConvertedSources(transcoder).of(source, request(ALL), signal);
  const lines = (await converted.manifest(place, "main", signal)).split("\n");
  assert.deepEqual(
    lines.filter((line) => line.includes("STREAM-INF")),
    [
      '#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="avc1.64001f,mp4a.40.2",AUDIO="audio"',
      '#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="avc1.64001f,ac-3",AUDIO="original"',
    ],
  );
  assert.match(lines.join("\n"), /GROUP-ID="original"[^\n]*audio=501"/);
  assert.match(await converted.manifest(place, { audio: 501 }, signal), /\/12\.a501\.ts$/m);
  assert.equal(await converted.find("ts", 1, signal, 501), 1001);
  assert.deepEqual(await converted.make("ts", 1, 501, signal), segment(1));
});
