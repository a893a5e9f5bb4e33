import assert from "node:assert/strict";
import { fromHex } from "../../src/base/bytes.ts";
import { buildPat, buildPmt, packetsOfSection } from "../../src/media/psi.ts";
import { streamsOf } from "../../src/media/ts-programme.ts";
import { TableReader } from "../../src/media/ts-tables.ts";
import type { TsMuxPacket, TsMuxTrack } from "../../src/remux/ts-mux-input.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";

/** A sequence and a picture parameter set of 320×180 High profile video with B-frames (made by x264). */
export const SPS = fromHex("6764000cacd941419f9f0110000003001000000303 20f1429960".replaceAll(" ", ""))!;
export const PPS = fromHex("68ebe3cb22c0")!;
/** The `avcC` of both. */
export const AVCC = new Uint8Array([
  1, 0x64, 0, 0x0c, 0xff, 0xe1, 0, SPS.length, ...SPS, 1, 0, PPS.length, ...PPS,
]); // biome-ignore format: a table
/** AAC-LC, 48 kHz, stereo. */
export const AAC_CONFIG = new Uint8Array([0x11, 0x90]);

export const SYNTHETIC_TRACKS: readonly TsMuxTrack[] = [
  { codec: "h264", language: "und", config: AVCC, reorderSeconds: 0.04 },
  { codec: "aac", language: "eng", config: AAC_CONFIG },
];

/** Presentation index of each frame of a group in decode order: I P b b P b b P b b P P. */
const GROUP = [0, 3, 1, 2, 6, 4, 5, 9, 7, 8, 10, 11] as const;
/** Duration of a group of pictures. */
export const GROUP_SECONDS = GROUP.length / 25;

/** Whole groups of frames in the structure of an encoder with B-frames, and audio of the same duration; not decodable. */
export function syntheticPackets(seconds: number, startSeconds = 0, frameBytes = 700): TsMuxPacket[] {
  const packets: TsMuxPacket[] = [];
  const frames = Math.ceil(seconds / GROUP_SECONDS) * GROUP.length;
  for (let frame = 0; frame < frames; frame++) {
    const place = frame % GROUP.length;
    const data = new Uint8Array(4 + frameBytes).fill(0x5a);
    data.set([0, 0, frameBytes >> 8, frameBytes & 255, place === 0 ? 0x65 : 0x41]);
    const ptsSeconds = startSeconds + (frame - place + GROUP[place]!) / 25;
    packets.push({ track: 0, ptsSeconds, durationSeconds: 0.04, isKey: place === 0, data });
  }
  for (let frame = 0; frame < (frames / 25) * (48000 / 1024); frame++) {
    const data = new Uint8Array(170).fill(0x21);
    packets.push({
      track: 1,
      ptsSeconds: startSeconds + (frame * 1024) / 48000,
      durationSeconds: 1024 / 48000,
      isKey: true,
      data,
    });
  }
  return packets;
}

/** A small transport stream of video and audio. */
export function syntheticTs(seconds: number, startSeconds = 0): Uint8Array<ArrayBuffer> {
  return new TsMuxer(SYNTHETIC_TRACKS).segment(syntheticPackets(seconds, startSeconds));
}

/** A PAT with one programme, whose PMT is made by {@link pmtOf}. */
export const PAT = packetsOfSection(buildPat({ number: 1, pmtPid: 0x100 }), 0);
/** A packet of video without meaning. */
export const VIDEO_PACKET = new Uint8Array(188).fill(0x47);
VIDEO_PACKET.set([0x47, 0x01, 0x01, 0x10]);

/** A PMT with video, audio in these languages, and subtitles. */
export function pmtOf(...languages: string[]): Uint8Array<ArrayBuffer> {
  const audio = languages.map((language, i) => ({ streamType: 15, pid: 0x110 + i, language }));
  const streams = [{ streamType: 27, pid: 0x101 }, ...audio, { streamType: 144, pid: 0x180 }];
  return packetsOfSection(buildPmt({ programme: 1, version: 0, pcrPid: 0x101, streams }), 0x100);
}

/** Returns the audio languages of the last PMT, in order. */
export function languagesIn(packets: Uint8Array): string[] {
  const reader = new TableReader();
  for (let at = 0; at < packets.length; at += 188) reader.push(packets, at);
  const streams = streamsOf(reader.tables(true)!.pmt);
  assert.deepEqual([streams[0]!.pid, streams.at(-1)!.pid], [0x101, 0x180]);
  return streams.slice(1, -1).map(({ language }) => language);
}
