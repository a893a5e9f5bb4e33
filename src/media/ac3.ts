/** What the header of an AC-3 or E-AC-3 sync frame says (ETSI TS 102 366 4.3, E.1.2). */
export interface Ac3Header {
  readonly codec: "ac3" | "eac3";
  readonly sampleRate: number;
  /** With the low-frequency channel. */
  readonly channels: number;
  readonly samples: number;
  readonly frameBytes: number;
  /** A dependent substream of E-AC-3: it belongs to the frame before it. */
  readonly isDependent: boolean;
}

const RATES = [48000, 44100, 32000] as const;
const CHANNELS = [2, 1, 2, 3, 3, 4, 4, 5] as const;
const BITRATES = [
  32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640,
] as const;

/** The header at `at`, or undefined where there is none. */
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
  const mode = bytes[at + 6]! >> 5;
  // Mix levels lie between the mode and the low-frequency flag, two bits each, as the mode demands.
  const skip = (mode & 1 && mode !== 1 ? 2 : 0) + (mode & 4 ? 2 : 0) + (mode === 2 ? 2 : 0);
  const lfe = (((bytes[at + 6]! << 8) | bytes[at + 7]!) >> (12 - skip)) & 1;
  const words = sampleRate === 44100 ? Math.floor((kilobits * 96000) / 44100) + (bytes[at + 4]! & 1) : 0;
  const frameBytes = words > 0 ? words * 2 : (kilobits * 192000) / sampleRate;
  return {
    codec: "ac3",
    sampleRate,
    channels: CHANNELS[mode]! + lfe,
    samples: 1536,
    frameBytes,
    isDependent: false,
  };
}

function readEnhanced(bytes: Uint8Array, at: number): Ac3Header | undefined {
  const frameBytes = ((((bytes[at + 2]! & 7) << 8) | bytes[at + 3]!) + 1) * 2;
  const rateCode = bytes[at + 4]! >> 6;
  const second = (bytes[at + 4]! >> 4) & 3;
  if (rateCode === 3 && second === 3) return undefined;
  const sampleRate = rateCode === 3 ? RATES[second]! / 2 : RATES[rateCode]!;
  const blocks = rateCode === 3 ? 6 : [1, 2, 3, 6][second]!;
  const channels = CHANNELS[(bytes[at + 4]! >> 1) & 7]! + (bytes[at + 4]! & 1);
  const isDependent = bytes[at + 2]! >> 6 === 1;
  return { codec: "eac3", sampleRate, channels, samples: blocks * 256, frameBytes, isDependent };
}
