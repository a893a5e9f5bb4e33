import { readAdtsHeader } from "../media/aac.ts";
import { readAc3Header } from "../media/ac3.ts";
import { readId3 } from "../media/id3.ts";
import { readMpegAudioHeader } from "../media/mpeg-audio.ts";
import { TICKS_PER_SECOND } from "../media/timestamps.ts";
import type { TsCodec, TsMuxPacket } from "./ts-mux-input.ts";
import { TS_BASE_SECONDS, TsMuxer } from "./ts-muxer.ts";

interface Frame {
  readonly codec: TsCodec;
  readonly sampleRate: number;
  readonly frameBytes: number;
  readonly samples: number;
}

/**
 * Audio without a container (RFC 8216 3.4: AAC, MP3, AC-3, E-AC-3 behind an ID3 tag) as MPEG-TS; undefined where the bytes
 * are none. Its time is that of the tag, or `otherwiseSeconds` where it says none. What is damaged between two frames is
 * left out.
 */
export function packedAudioToTs(
  bytes: Uint8Array,
  otherwiseSeconds: number,
  language: string,
): Uint8Array<ArrayBuffer> | undefined {
  const { length: head, ticks } = readId3(bytes);
  const first = frameAt(bytes, head);
  if (!first || !followedByFrame(bytes, head, first)) return undefined;
  const packets: TsMuxPacket[] = [];
  let seconds = ticks === undefined ? otherwiseSeconds : ticks / TICKS_PER_SECOND - TS_BASE_SECONDS;
  for (let at = head; at < bytes.length; ) {
    const frame = frameAt(bytes, at);
    if (!frame || frame.codec !== first.codec || at + frame.frameBytes > bytes.length) {
      at++;
      continue;
    }
    const durationSeconds = frame.samples / frame.sampleRate;
    const data = bytes.subarray(at, at + frame.frameBytes);
    packets.push({ track: 0, ptsSeconds: seconds, durationSeconds, isKey: true, data });
    seconds += durationSeconds;
    at += frame.frameBytes;
  }
  const { codec, sampleRate } = first;
  return new TsMuxer([{ codec, language, sampleRate }]).segment(packets);
}

/** Two bytes of chance look like a frame; two frames in a row do not. */
function followedByFrame(bytes: Uint8Array, at: number, { codec, frameBytes }: Frame): boolean {
  const next = at + frameBytes;
  return next === bytes.length || frameAt(bytes, next)?.codec === codec;
}

function frameAt(bytes: Uint8Array, at: number): Frame | undefined {
  const adts = readAdtsHeader(bytes, at);
  if (adts) return { ...adts, codec: "aac", samples: 1024 };
  const ac3 = readAc3Header(bytes, at);
  if (ac3) return ac3.frameBytes > 0 ? ac3 : undefined;
  const mpeg = readMpegAudioHeader(bytes, at);
  if (!mpeg || mpeg.layer === 1 || mpeg.frameBytes < 4) return undefined;
  return { ...mpeg, codec: mpeg.layer === 3 ? "mp3" : "mp2" };
}
