import { BitReader } from "./bit-reader.ts";

/** The header of an AC-3 or E-AC-3 sync frame (ETSI TS 102 366 4.3, E.1.2). */
interface Ac3Header {
  readonly codec: "ac3" | "eac3";
  readonly sampleRate: number;
  readonly samples: number;
  readonly frameBytes: number;
}

const RATES = [48000, 44100, 32000] as const;
const BITRATES = [
  32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640,
] as const;

/** Reads the header at offset `at`; undefined if there is no valid header. */
export function readAc3Header(bytes: Uint8Array, at: number): Ac3Header | undefined {
  if (at + 8 > bytes.length || bytes[at] !== 0x0b || bytes[at + 1] !== 0x77) return undefined;
  const version = bytes[at + 5]! >> 3;
  if (version <= 10) return readPlain(bytes, at);
  return version <= 16 ? readEnhanced(bytes, at) : undefined;
}

function readPlain(bytes: Uint8Array, at: number): Ac3Header | undefined {
  const sampleRate = RATES[bytes[at + 4]! >> 6];
  const kilobits = BITRATES[(bytes[at + 4]! & 0x3f) >> 1];
  if (sampleRate === undefined || kilobits === undefined) return undefined;
  const words = sampleRate === 44100 ? Math.floor((kilobits * 96000) / 44100) + (bytes[at + 4]! & 1) : 0;
  const frameBytes = words > 0 ? words * 2 : (kilobits * 192000) / sampleRate;
  return { codec: "ac3", sampleRate, samples: 1536, frameBytes };
}

function readEnhanced(bytes: Uint8Array, at: number): Ac3Header | undefined {
  const frameBytes = ((((bytes[at + 2]! & 7) << 8) | bytes[at + 3]!) + 1) * 2;
  const rateCode = bytes[at + 4]! >> 6;
  const second = (bytes[at + 4]! >> 4) & 3;
  if (rateCode === 3 && second === 3) return undefined;
  const sampleRate = rateCode === 3 ? RATES[second]! / 2 : RATES[rateCode]!;
  const blocks = rateCode === 3 ? 6 : [1, 2, 3, 6][second]!;
  return { codec: "eac3", sampleRate, samples: blocks * 256, frameBytes };
}

/** The channels and the dialogue level of an AC-3 or E-AC-3 frame. */
export interface Ac3Programme {
  /** Audio coding mode (ETSI TS 102 366 table 4.3): which channels exist except for the low frequency channel. */
  readonly mode: number;
  readonly hasLowFrequencies: boolean;
  /** The level of dialogue below full scale, in decibels: 1 to 31. */
  readonly dialogueLevel: number;
}

/** Reads the bit stream information at offset `at` (ETSI TS 102 366 4.3.2, E.1.3); undefined if there is no valid header. */
export function readAc3Programme(bytes: Uint8Array, at: number): Ac3Programme | undefined {
  const header = readAc3Header(bytes, at);
  if (!header) return undefined;
  const bits = new BitReader(bytes.subarray(at, at + 12), "AC-3 header");
  let mode: number;
  let hasLowFrequencies: boolean;
  if (header.codec === "eac3") {
    bits.skip(36);
    mode = bits.bits(3);
    hasLowFrequencies = bits.flag();
    bits.skip(5);
  } else {
    bits.skip(48);
    mode = bits.bits(3);
    if ((mode & 1) === 1 && mode !== 1) bits.skip(2);
    if (mode & 4) bits.skip(2);
    if (mode === 2) bits.skip(2);
    hasLowFrequencies = bits.flag();
  }
  // 0 is reserved and means 31.
  return { mode, hasLowFrequencies, dialogueLevel: bits.bits(5) || 31 };
}
