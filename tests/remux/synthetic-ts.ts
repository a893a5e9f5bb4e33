import { fromHex } from "../../src/base/bytes.ts";
import type { TsMuxPacket, TsMuxTrack } from "../../src/remux/ts-mux-input.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";

/** A sequence and a picture parameter set of 320×180 High profile video with B-frames (made by x264). */
export const SPS = fromHex("6764000cacd941419f9f0110000003001000000303 20f1429960".replaceAll(" ", ""))!;
export const PPS = fromHex("68ebe3cb22c0")!;
/** An `avcC` of the two. */
export const AVCC = new Uint8Array([
  1, 0x64, 0, 0x0c, 0xff, 0xe1, 0, SPS.length, ...SPS, 1, 0, PPS.length, ...PPS,
]); // biome-ignore format: a table
/** AAC-LC, 48 kHz, stereo. */
export const AAC_CONFIG = new Uint8Array([0x11, 0x90]);

export const SYNTHETIC_TRACKS: readonly TsMuxTrack[] = [
  { codec: "h264", language: "und", config: AVCC, reorderSeconds: 0.08 },
  { codec: "aac", language: "eng", config: AAC_CONFIG },
];

/** Frames as an encoder with B-frames and a keyframe every half second would give them; no decoder could show them. */
export function syntheticPackets(seconds: number, startSeconds = 0, frameBytes = 700): TsMuxPacket[] {
  const packets: TsMuxPacket[] = [];
  for (let frame = 0; frame < seconds * 25; frame++) {
    const isKey = frame % 12 === 0;
    const type = isKey ? 0x65 : 0x41;
    const data = new Uint8Array(4 + frameBytes).fill(0x5a);
    data.set([0, 0, frameBytes >> 8, frameBytes & 255, type]);
    // Decode order I P b b P b b …: every third frame is shown two later than its place.
    const shift = isKey ? 0 : frame % 12 === 11 ? 0 : [2, -1, -1][((frame % 12) - 1) % 3]!;
    const ptsSeconds = startSeconds + (frame + (frame % 12 > 9 && frame % 12 < 11 ? 0 : shift)) / 25;
    packets.push({ track: 0, ptsSeconds, durationSeconds: 0.04, isKey, data });
  }
  for (let frame = 0; frame < (seconds * 48000) / 1024; frame++) {
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
