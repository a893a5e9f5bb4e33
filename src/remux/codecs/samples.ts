/** Decoded samples of one frame. */
export interface Samples {
  readonly sampleRate: number;
  /** One array for each channel, of equal length, full scale ±1. */
  readonly channels: readonly Float32Array[];
  /** The speaker of each channel. */
  readonly layout: readonly Speaker[];
}

/** Decodes the frames of one track, in order. */
export interface FrameDecoder {
  /** Returns the samples of a frame, which are valid until the next call; undefined if it is damaged. */
  decode(frame: Uint8Array): Samples | undefined;
  close(): void;
}

/** Positions of speakers (ITU-R BS.775): front, low frequencies, side, back; `MB` is the middle of the back. */
export type Speaker = "L" | "R" | "C" | "LFE" | "SL" | "SR" | "BL" | "BR" | "MB";

/** The usual layout for a number of channels, in the order of FFmpeg and FLAC (RFC 9639 9.1.3). */
const LAYOUTS: readonly (readonly Speaker[])[] = [
  [],
  ["C"],
  ["L", "R"],
  ["L", "R", "C"],
  ["L", "R", "SL", "SR"],
  ["L", "R", "C", "SL", "SR"],
  ["L", "R", "C", "LFE", "SL", "SR"],
  ["L", "R", "C", "LFE", "MB", "SL", "SR"],
  ["L", "R", "C", "LFE", "BL", "BR", "SL", "SR"],
];

/** Returns the usual layout for `count` channels; undefined if there is none. */
export function layoutOf(count: number): readonly Speaker[] | undefined {
  return count > 0 ? LAYOUTS[count] : undefined;
}

const DOWN_3_DB = Math.SQRT1_2;

/**
 * The share of each speaker in the left and right channel (ITU-R BS.775-3 annex 4, table 2). Low frequencies are omitted, because
 * small speakers cannot play them. The sum can exceed full scale: the limiter handles that, because a downmix that is scaled down for
 * the worst case makes dialogue too quiet.
 */
const STEREO: Readonly<Record<Speaker, readonly [number, number]>> = {
  L: [1, 0], R: [0, 1], C: [DOWN_3_DB, DOWN_3_DB], LFE: [0, 0], SL: [DOWN_3_DB, 0], SR: [0, DOWN_3_DB],
  BL: [DOWN_3_DB, 0], BR: [0, DOWN_3_DB], MB: [0.5, 0.5],
}; // biome-ignore format: a table

/** The order of channels in AAC with six channels, before the encoder reorders them. */
const SURROUND: readonly Speaker[] = ["L", "R", "C", "LFE", "SL", "SR"];
/** Where speakers go that 5.1 does not have. */
const SURROUND_FROM: Partial<Record<Speaker, readonly (readonly [Speaker, number])[]>> = {
  BL: [["SL", DOWN_3_DB]],
  BR: [["SR", DOWN_3_DB]],
  MB: [
    ["SL", DOWN_3_DB],
    ["SR", DOWN_3_DB],
  ],
};

/**
 * Mixes a range of samples to `out.length / count` interleaved frames of two or six channels.
 * @param gain a factor for all channels.
 */
export function mixInto(
  { channels, layout }: Samples,
  [from, to]: readonly [number, number],
  outChannels: 2 | 6,
  gain: number,
  out: Float32Array,
  at: number,
): void {
  for (const [index, speaker] of layout.entries()) {
    const source = channels[index]!;
    for (const [target, share] of targetsOf(speaker, layout.length, outChannels)) {
      const factor = share * gain;
      for (let i = from, o = at * outChannels + target; i < to; i++, o += outChannels)
        out[o] = out[o]! + source[i]! * factor;
    }
  }
}

function targetsOf(speaker: Speaker, count: number, outChannels: 2 | 6): (readonly [number, number])[] {
  if (outChannels === 2) {
    // A single channel plays at full level on both sides.
    const [left, right] = count === 1 ? [1, 1] : STEREO[speaker];
    return [
      [0, left],
      [1, right],
    ].filter(([, share]) => share! > 0) as [number, number][];
  }
  const direct = SURROUND.indexOf(speaker);
  if (direct >= 0) return [[direct, 1]];
  return (SURROUND_FROM[speaker] ?? []).map(([to, share]) => [SURROUND.indexOf(to), share] as const);
}
