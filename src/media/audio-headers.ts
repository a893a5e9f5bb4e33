import { readU32 } from "../base/bytes.ts";
import { BitReader } from "./bit-reader.ts";

/** The header of an MPEG audio frame (ISO 11172-3 2.4.1.3, ISO 13818-3). */
interface MpegAudioHeader {
  /** 1, 2 (MP2) or 3 (MP3). */
  readonly layer: 1 | 2 | 3;
  readonly sampleRate: number;
  readonly samples: number;
  readonly frameBytes: number;
}

const BITRATES_V1 = {
  1: [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  2: [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  3: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
} as const;
const BITRATES_V2 = {
  1: [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  2: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  3: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
} as const;

/** Reads the header at offset `at`; undefined if there is no valid header. Free-format frames (bit rate 0) are not supported. */
export function readMpegAudioHeader(bytes: Uint8Array, at: number): MpegAudioHeader | undefined {
  if (at + 4 > bytes.length || bytes[at] !== 0xff || (bytes[at + 1]! & 0xe0) !== 0xe0) return undefined;
  const version = (bytes[at + 1]! >> 3) & 3;
  const layer = 4 - ((bytes[at + 1]! >> 1) & 3);
  const bitrateIndex = bytes[at + 2]! >> 4;
  const rateIndex = (bytes[at + 2]! >> 2) & 3;
  if (version === 1 || (layer !== 1 && layer !== 2 && layer !== 3) || rateIndex === 3) return undefined;
  const kilobits = (version === 3 ? BITRATES_V1 : BITRATES_V2)[layer][bitrateIndex];
  if (!kilobits) return undefined;
  const sampleRate = [44100, 48000, 32000][rateIndex]! / (version === 3 ? 1 : version === 2 ? 2 : 4);
  const padding = (bytes[at + 2]! >> 1) & 1;
  const samples = layer === 1 ? 384 : layer === 3 && version !== 3 ? 576 : 1152;
  const slot = layer === 1 ? 4 : 1;
  const frameBytes = (Math.floor((samples * kilobits * 125) / sampleRate / slot) + padding) * slot;
  return { layer, sampleRate, samples, frameBytes };
}

/** The sync word of a DTS core frame, 16 bits big-endian. */
const DTS_CORE_SYNC = 0x7ffe8001;
/** The sync word of an extension substream, which DTS-HD adds to each core frame. */
const DTS_EXTENSION_SYNC = 0x64582025;

/** Sampling rates of DTS by `SFREQ` (ETSI TS 102 114 table 5-5), in Hz; 0: reserved. */
const DTS_RATES = [
  0, 8000, 16000, 32000, 0, 0, 11025, 22050, 44100, 0, 0, 12000, 24000, 48000, 0, 0,
] as const;

/** The size of a DTS core frame at offset `at`, its samples and its sampling rate (ETSI TS 102 114 5.3.1); undefined if there is none. */
export function readDtsHeader(
  bytes: Uint8Array,
  at: number,
): { readonly frameBytes: number; readonly samples: number; readonly sampleRate: number } | undefined {
  if (at + 9 > bytes.length || readU32(bytes, at) !== DTS_CORE_SYNC) return undefined;
  const frameBytes = (((bytes[at + 5]! & 3) << 12) | (bytes[at + 6]! << 4) | (bytes[at + 7]! >> 4)) + 1;
  const sampleRate = DTS_RATES[(bytes[at + 8]! >> 2) & 15];
  const samples = dtsFrameSamples(bytes.subarray(at, at + 6));
  return sampleRate && samples && frameBytes >= 96 ? { frameBytes, samples, sampleRate } : undefined;
}

/** Returns the size of the extension substream at offset `at` (ETSI TS 102 114 7.4.1), in bytes; 0 if there is none. */
export function dtsExtensionBytes(bytes: Uint8Array, at: number): number {
  if (at + 10 > bytes.length || readU32(bytes, at) !== DTS_EXTENSION_SYNC) return 0;
  const reader = new BitReader(bytes.subarray(at + 5, at + 10), "DTS extension");
  // The index of the substream.
  reader.skip(2);
  const isLong = reader.flag();
  reader.skip(isLong ? 12 : 8);
  return reader.bits(isLong ? 20 : 16) + 1;
}

/** Returns the samples per channel of a DTS frame (ETSI TS 102 114 5.3.1, NBLKS); undefined if it does not begin with a core frame. */
export function dtsFrameSamples(frame: Uint8Array): number | undefined {
  if (frame.length < 6 || readU32(frame, 0) !== DTS_CORE_SYNC) return undefined;
  const blocks = (((frame[4]! & 1) << 6) | (frame[5]! >> 2)) + 1;
  return blocks * 32;
}
