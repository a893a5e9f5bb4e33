import { readU32 } from "../base/bytes.ts";

/** The sync word of a DTS core frame, 16 bits big-endian. */
const CORE_SYNC = 0x7ffe8001;

/** Sampling rates by `SFREQ` (table 5-5), in Hz; 0: reserved. */
const RATES = [0, 8000, 16000, 32000, 0, 0, 11025, 22050, 44100, 0, 0, 12000, 24000, 48000, 0, 0] as const;

/** The size of a DTS core frame at offset `at`, its samples and its sampling rate (ETSI TS 102 114 5.3.1); undefined if there is none. */
export function readDtsHeader(
  bytes: Uint8Array,
  at: number,
): { readonly frameBytes: number; readonly samples: number; readonly sampleRate: number } | undefined {
  if (at + 9 > bytes.length || readU32(bytes, at) !== CORE_SYNC) return undefined;
  const frameBytes = (((bytes[at + 5]! & 3) << 12) | (bytes[at + 6]! << 4) | (bytes[at + 7]! >> 4)) + 1;
  const sampleRate = RATES[(bytes[at + 8]! >> 2) & 15];
  const samples = dtsFrameSamples(bytes.subarray(at, at + 6));
  return sampleRate && samples && frameBytes >= 96 ? { frameBytes, samples, sampleRate } : undefined;
}

/** Returns the samples per channel of a DTS frame (ETSI TS 102 114 5.3.1, NBLKS); undefined if it does not begin with a core frame. */
export function dtsFrameSamples(frame: Uint8Array): number | undefined {
  if (frame.length < 6 || readU32(frame, 0) !== CORE_SYNC) return undefined;
  const blocks = (((frame[4]! & 1) << 6) | (frame[5]! >> 2)) + 1;
  return blocks * 32;
}
