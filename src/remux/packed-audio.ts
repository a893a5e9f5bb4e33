import { SluiceError } from "../base/errors.ts";
import { readAdtsHeader } from "../media/aac.ts";
import { readAc3Header } from "../media/ac3.ts";
import { dtsExtensionBytes, readDtsHeader, readMpegAudioHeader } from "../media/audio-headers.ts";
import { readId3 } from "../media/id3.ts";
import { TICKS_PER_SECOND } from "../media/timestamps.ts";
import { TS_BASE_SECONDS, type TsCodec, type TsMuxPacket } from "./ts-mux-input.ts";
import { TsMuxer } from "./ts-muxer.ts";

/** Seven minutes of AAC. Limits the output for a segment of tiny frames. */
const MAX_FRAMES = 20_000;
/** Limit of invalid bytes between frames; a segment with more is not audio. */
const MAX_DAMAGE_BYTES = 64 * 1024;

/** The header of a frame of audio. */
export interface Frame {
  readonly codec: TsCodec;
  readonly sampleRate: number;
  readonly frameBytes: number;
  readonly samples: number;
}

/**
 * Remuxes packed audio (RFC 8216 3.4: AAC, MP3, AC-3 or E-AC-3 after an ID3 tag) to MPEG-TS. Skips damaged bytes between frames.
 * @param fallbackSeconds the start time if the ID3 tag has none.
 * @param language ISO 639-2, for the PMT.
 * @returns undefined if `bytes` does not begin with an audio frame.
 * @throws SluiceError `broken_media` if there are too many damaged bytes or frames.
 */
export function packedAudioToTs(
  bytes: Uint8Array,
  fallbackSeconds: number,
  language: string,
): Uint8Array<ArrayBuffer> | undefined {
  const { length: head, ticks } = readId3(bytes);
  const first = frameAt(bytes, head);
  if (!first || !followedByFrame(bytes, head, first)) return undefined;
  const packets: TsMuxPacket[] = [];
  let damage = 0;
  let seconds = ticks === undefined ? fallbackSeconds : ticks / TICKS_PER_SECOND - TS_BASE_SECONDS;
  for (let at = head; at < bytes.length; ) {
    const frame = frameAt(bytes, at);
    if (!frame || frame.codec !== first.codec || at + frame.frameBytes > bytes.length) {
      at++;
      if (++damage > MAX_DAMAGE_BYTES)
        throw new SluiceError(
          "broken_media",
          `an audio segment has more than ${MAX_DAMAGE_BYTES} invalid bytes`,
        );
      continue;
    }
    if (packets.length === MAX_FRAMES)
      throw new SluiceError("broken_media", `an audio segment has more than ${MAX_FRAMES} frames`);
    const durationSeconds = frame.samples / frame.sampleRate;
    const data = bytes.subarray(at, at + frame.frameBytes);
    packets.push({ track: 0, ptsSeconds: seconds, durationSeconds, isKey: true, data });
    seconds += durationSeconds;
    at += frame.frameBytes;
  }
  const { codec, sampleRate } = first;
  return new TsMuxer([{ codec, language, sampleRate }]).segment(packets);
}

/** Random bytes can look like a frame header; two frames in a row are conclusive. */
export function followedByFrame(
  bytes: Uint8Array,
  at: number,
  { codec, frameBytes }: Frame,
  find = frameAt,
): boolean {
  const next = at + frameBytes;
  return next === bytes.length || find(bytes, next)?.codec === codec;
}

/** Returns the frame of AAC (ADTS), AC-3, E-AC-3, DTS, MP2 or MP3 at offset `at`; undefined if there is none. */
export function frameAt(bytes: Uint8Array, at: number): Frame | undefined {
  const adts = readAdtsHeader(bytes, at);
  if (adts) return { ...adts, codec: "aac", samples: 1024 };
  const ac3 = readAc3Header(bytes, at);
  if (ac3) return ac3.frameBytes > 0 ? ac3 : undefined;
  const dts = readDtsHeader(bytes, at);
  if (dts) {
    const frameBytes = dts.frameBytes + dtsExtensionBytes(bytes, at + dts.frameBytes);
    return { ...dts, codec: "dts", frameBytes };
  }
  const mpeg = readMpegAudioHeader(bytes, at);
  if (!mpeg || mpeg.layer === 1 || mpeg.frameBytes < 4) return undefined;
  return { ...mpeg, codec: mpeg.layer === 3 ? "mp3" : "mp2" };
}
