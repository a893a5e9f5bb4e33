import { DecodeError, SluiceError } from "../../base/errors.ts";
import { LATM_FRAME_SAMPLES, type LatmAudio, LatmReader, loasFrameBytes } from "../../media/latm.ts";
import type { TsMuxPacket } from "../ts-mux-input.ts";
import { type AudioUnit, splitFrames } from "./ts-audio.ts";

/** Raw AAC of a segment; all frames have the same configuration. */
export interface LatmFrames extends LatmAudio {
  readonly frames: readonly TsMuxPacket[];
}

/** Any rate finds the same frames; only their times depend on it. */
const PROVISIONAL_RATE = 48_000;

/** Returns true for AAC in LATM (stream type 0x11), which browsers do not play. Its frames are rewritten without decoding. */
export function isLatm(codec: string): boolean {
  return codec === "aac_latm";
}

/**
 * Returns the AAC frames of LATM units, with times as in {@link splitFrames}. Frames before the first configuration use that one, as most
 * frames refer to an earlier one. Omits damaged frames, and those with another configuration than the first. Undefined if there is no
 * configuration that is supported, or no frame.
 */
export function latmFrames(before: readonly AudioUnit[], own: readonly AudioUnit[]): LatmFrames | undefined {
  const reader = new LatmReader();
  const found = splitAt(PROVISIONAL_RATE, before, own);
  for (const { data } of [...found.before, ...found.own]) {
    read(reader, data);
    if (reader.audio) break;
  }
  if (!reader.audio) return undefined;
  const split =
    reader.audio.sampleRate === PROVISIONAL_RATE ? found : splitAt(reader.audio.sampleRate, before, own);
  for (const { data } of split.before) read(reader, data);
  let audio: LatmAudio | undefined;
  const frames = split.own.flatMap((packet): TsMuxPacket[] => {
    const frame = read(reader, packet.data);
    if (!frame) return [];
    audio ??= frame;
    return isEqual(frame, audio) ? [{ ...packet, data: frame.data }] : [];
  });
  return audio && frames.length > 0
    ? { config: audio.config, sampleRate: audio.sampleRate, frames }
    : undefined;
}

/** Returns true if the first configuration in these units is not supported; false if there is none. */
export function isUnsupportedLatm(units: readonly AudioUnit[]): boolean {
  const reader = new LatmReader();
  for (const { data } of splitAt(PROVISIONAL_RATE, [], units).own) {
    try {
      reader.read(data);
      return false;
    } catch (error) {
      if (error instanceof SluiceError) return true;
      if (!(error instanceof DecodeError)) throw error;
    }
  }
  return false;
}

function splitAt(sampleRate: number, before: readonly AudioUnit[], own: readonly AudioUnit[]) {
  return splitFrames(before, own, (bytes, at) => {
    const frameBytes = loasFrameBytes(bytes, at);
    return frameBytes === undefined
      ? undefined
      : { codec: "aac", sampleRate, frameBytes, samples: LATM_FRAME_SAMPLES };
  });
}

function read(reader: LatmReader, frame: Uint8Array) {
  try {
    return reader.read(frame);
  } catch (error) {
    if (error instanceof DecodeError || error instanceof SluiceError) return undefined;
    throw error;
  }
}

function isEqual(one: LatmAudio, other: LatmAudio): boolean {
  return one.config.every((byte, i) => byte === other.config[i]);
}
