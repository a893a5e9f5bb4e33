import { SluiceError } from "../base/errors.ts";
import { readAdtsHeader } from "../media/aac.ts";
import { readAc3Header } from "../media/ac3.ts";
import { readId3 } from "../media/id3.ts";
import { readMpegAudioHeader } from "../media/mpeg-audio.ts";
import { TICKS_PER_SECOND } from "../media/timestamps.ts";
import type { TsCodec, TsMuxPacket } from "./ts-mux-input.ts";
import { TS_BASE_SECONDS, TsMuxer } from "./ts-muxer.ts";

/** Seven minutes of AAC. A segment of frames that say nothing must not become millions of packets. */
const MAX_FRAMES = 20_000;
/** More that is no frame between frames is something else. */
const MAX_DAMAGE_BYTES = 64 * 1024;

interface Frame {
  readonly codec: TsCodec;
  readonly sampleRate: number;
  readonly frameBytes: number;
  readonly samples: number;
}

/**
 * Audio without a container (RFC 8216 3.4: AAC, MP3, AC-3, E-AC-3 behind an ID3 tag) as MPEG-TS; undefined where the bytes
 * are none. Its time is that of the tag, or `otherwiseSeconds` where it says none. What is damaged between two frames is
 * left out. Throws `broken_media` where that, or the number of frames, is beyond measure.
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
  let damage = 0;
  let seconds = ticks === undefined ? otherwiseSeconds : ticks / TICKS_PER_SECOND - TS_BASE_SECONDS;
  for (let at = head; at < bytes.length; ) {
    const frame = frameAt(bytes, at);
    if (!frame || frame.codec !== first.codec || at + frame.frameBytes > bytes.length) {
      at++;
      if (++damage > MAX_DAMAGE_BYTES)
        throw new SluiceError("broken_media", "a segment of audio is not audio throughout");
      continue;
    }
    if (packets.length === MAX_FRAMES)
      throw new SluiceError("broken_media", `a segment of audio has more than ${MAX_FRAMES} frames`);
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
