import { deltaTicks, TICKS_PER_SECOND } from "../../media/timestamps.ts";
import { opusUnits, readBlurayPcm } from "../../media/unit-audio.ts";
import type { AudioSource } from "../codecs/codecs.ts";
import { TS_BASE_SECONDS, type TsMuxPacket } from "../ts-mux-input.ts";
import type { AudioUnit } from "./ts-audio.ts";

/** The audio of a segment whose PES packets contain whole frames. */
export interface UnitFrames {
  /** What is decoded; undefined without any frame. */
  readonly source: AudioSource | undefined;
  readonly before: readonly TsMuxPacket[];
  readonly own: readonly TsMuxPacket[];
}

/** A frame in a PES packet. */
interface UnitFrame {
  readonly data: Uint8Array;
  readonly seconds: number;
  readonly source: AudioSource;
}

const OPUS_RATE = 48_000;

/** How the frames of codecs that have no sync word are found in a PES packet. */
const READERS: Readonly<Record<string, (bytes: Uint8Array) => UnitFrame[]>> = {
  opus: (bytes) =>
    opusUnits(bytes).map(({ data, samples }) => ({
      data,
      seconds: samples / OPUS_RATE,
      source: { codec: "opus", config: undefined, sampleRate: OPUS_RATE, channels: 2 },
    })),
  pcm_bluray: (bytes) => {
    const pcm = readBlurayPcm(bytes);
    if (!pcm) return [];
    const { data, bits, sampleRate, channels, samples } = pcm;
    const source = { codec: `pcm-s${bits}be`, config: undefined, sampleRate, channels };
    return [{ data, seconds: samples / sampleRate, source }];
  },
};

/** Returns the name of the decoder for a codec of transport streams. */
export function decoderOf(codec: string): string {
  return codec === "pcm_bluray" ? "pcm-s24be" : codec;
}

/** Returns true if the PES packets of this codec contain whole frames without a sync word. */
export function hasUnitFrames(codec: string): boolean {
  return Object.hasOwn(READERS, codec);
}

/**
 * Returns the frames of units. Their times are relative to `TS_BASE_SECONDS`, as in `splitFrames`. A frame whose format differs from that
 * of the first one counts as damaged.
 */
export function unitFrames(
  codec: string,
  before: readonly AudioUnit[],
  own: readonly AudioUnit[],
): UnitFrames {
  const origin = [...before, ...own].find(({ pts }) => pts !== undefined)?.pts;
  const read = READERS[codec];
  if (origin === undefined || !read) return { source: undefined, before: [], own: [] };
  let source: AudioSource | undefined;
  let seconds: number | undefined;
  const packetsOf = (units: readonly AudioUnit[]) =>
    units.flatMap(({ pts, bytes }) => {
      if (pts !== undefined)
        seconds = (origin + deltaTicks(pts, origin)) / TICKS_PER_SECOND - TS_BASE_SECONDS;
      return read(bytes).flatMap((frame): TsMuxPacket[] => {
        source ??= frame.source;
        if (seconds === undefined || JSON.stringify(frame.source) !== JSON.stringify(source)) return [];
        const ptsSeconds = seconds;
        seconds += frame.seconds;
        return [{ track: 0, ptsSeconds, durationSeconds: frame.seconds, isKey: true, data: frame.data }];
      });
    });
  const [first, rest] = [packetsOf(before), packetsOf(own)];
  return { source, before: first, own: rest };
}
