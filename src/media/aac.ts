import { DecodeError } from "../base/errors.ts";
import { BitReader } from "./bit-reader.ts";
import { BitWriter } from "./bit-writer.ts";

/** Sampling rates by index (ISO 14496-3 table 1.18), in Hz. */
const AAC_RATES = [
  96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350,
] as const;

/** An AudioSpecificConfig (ISO 14496-3 1.6.2.1). */
interface AacConfig {
  /** Audio object type of the core coder: 2 for AAC-LC, also in HE-AAC. */
  readonly objectType: number;
  /** Sampling rate of the core coder, in Hz. */
  readonly sampleRate: number;
  /** Channel configuration; 0 if a program config element defines the channels. */
  readonly channelConfig: number;
  /** 5 if spectral band replication (HE-AAC) is signalled, 29 for parametric stereo (HE-AAC v2), else undefined. */
  readonly extension: 5 | 29 | undefined;
  /** The program config element in the form of a raw data block, including its tag, in whole bytes. */
  readonly programConfig: Uint8Array | undefined;
  /** Such as `mp4a.40.2`. */
  readonly codecString: string;
}

/**
 * Returns the AudioSpecificConfig of AAC-LC; undefined if there is no index for the sampling rate.
 * @param channelConfig for stereo and 5.1, the number of channels.
 */
export function lowComplexityConfig(
  sampleRate: number,
  channelConfig: number,
): Uint8Array<ArrayBuffer> | undefined {
  const index = (AAC_RATES as readonly number[]).indexOf(sampleRate);
  const bits = (2 << 11) | (index << 7) | (channelConfig << 3);
  return index < 0 ? undefined : Uint8Array.of(bits >> 8, bits & 255);
}

/** An ADTS header (ISO 13818-7 6.2). */
interface AdtsHeader {
  readonly objectType: number;
  readonly sampleRate: number;
  readonly channelConfig: number;
  readonly headerBytes: number;
  /** Size of the frame, including the header. */
  readonly frameBytes: number;
  /** Samples per channel: 1024 for each raw data block. */
  readonly samples: number;
}

/** Reads an AudioSpecificConfig up to the configuration of the codec. Throws like {@link parseAacConfig}. */
export function readAacHead(
  bits: BitReader,
): Pick<AacConfig, "objectType" | "sampleRate" | "channelConfig" | "extension"> {
  let objectType = readObjectType(bits);
  const sampleRate = readRate(bits);
  const channelConfig = bits.bits(4);
  let extension: 5 | 29 | undefined;
  if (objectType === 5 || objectType === 29) {
    extension = objectType;
    readRate(bits);
    objectType = readObjectType(bits);
  }
  return { objectType, sampleRate, channelConfig, extension };
}

/** Parses an AudioSpecificConfig. Throws {@link DecodeError} if it is truncated or has a reserved sampling rate. */
export function parseAacConfig(bytes: Uint8Array): AacConfig {
  const bits = new BitReader(bytes, "AudioSpecificConfig");
  const head = readAacHead(bits);
  const { objectType, channelConfig, extension } = head;
  const programConfig =
    channelConfig === 0 && objectType <= 7 && bits.left > 3 ? readProgramConfig(bits) : undefined;
  return { ...head, programConfig, codecString: `mp4a.40.${extension ?? objectType}` };
}

/** Why ADTS cannot carry this AAC; undefined if it can. ADTS has only the object types 1 to 4. */
export function adtsProblem(config: AacConfig): string | undefined {
  if (config.objectType < 1 || config.objectType > 4)
    return `AAC object type ${config.objectType} has no ADTS form`;
  if (config.channelConfig > 7) return `AAC channel configuration ${config.channelConfig} has no ADTS form`;
  if (config.channelConfig === 0 && !config.programConfig)
    return "the AAC configuration has no channel configuration";
  return undefined;
}

/**
 * Returns the bytes to write before each raw AAC frame: seven bytes of ADTS header, then the program config element if the channel
 * configuration is 0. {@link setAdtsLength} sets the frame length. SBR and PS are signalled implicitly (the header has the core's rate).
 */
export function adtsPrefix(config: AacConfig): Uint8Array<ArrayBuffer> {
  const rate = nearestRateIndex(config.sampleRate);
  const extra = config.programConfig ?? new Uint8Array(0);
  const prefix = new Uint8Array(7 + extra.length);
  prefix[0] = 0xff;
  prefix[1] = 0xf1;
  prefix[2] = ((config.objectType - 1) << 6) | (rate << 2) | (config.channelConfig >> 2);
  prefix[3] = (config.channelConfig & 3) << 6;
  prefix[5] = 0x1f;
  prefix[6] = 0xfc;
  prefix.set(extra, 7);
  return prefix;
}

/** Sets the length of an ADTS frame, including its prefix, in the header at offset `at`. */
export function setAdtsLength(bytes: Uint8Array, at: number, frameBytes: number): void {
  bytes[at + 3] = (bytes[at + 3]! & 0xfc) | (frameBytes >> 11);
  bytes[at + 4] = frameBytes >> 3;
  bytes[at + 5] = (bytes[at + 5]! & 0x1f) | ((frameBytes & 7) << 5);
}

/** Reads the ADTS header at offset `at`; undefined if there is no valid header. */
export function readAdtsHeader(bytes: Uint8Array, at: number): AdtsHeader | undefined {
  if (at + 7 > bytes.length || bytes[at] !== 0xff || (bytes[at + 1]! & 0xf6) !== 0xf0) return undefined;
  const sampleRate = AAC_RATES[(bytes[at + 2]! >> 2) & 15];
  const headerBytes = bytes[at + 1]! & 1 ? 7 : 9;
  const frameBytes = ((bytes[at + 3]! & 3) << 11) | (bytes[at + 4]! << 3) | (bytes[at + 5]! >> 5);
  if (sampleRate === undefined || frameBytes < headerBytes) return undefined;
  return {
    objectType: (bytes[at + 2]! >> 6) + 1,
    sampleRate,
    channelConfig: ((bytes[at + 2]! & 1) << 2) | (bytes[at + 3]! >> 6),
    headerBytes,
    frameBytes,
    samples: 1024 * ((bytes[at + 6]! & 3) + 1),
  };
}

function nearestRateIndex(rate: number): number {
  let best = 0;
  for (const [index, known] of AAC_RATES.entries()) {
    if (Math.abs(known - rate) < Math.abs(AAC_RATES[best]! - rate)) best = index;
  }
  return best;
}

function readObjectType(bits: BitReader): number {
  const type = bits.bits(5);
  return type === 31 ? 32 + bits.bits(6) : type;
}

function readRate(bits: BitReader): number {
  const index = bits.bits(4);
  if (index === 15) return bits.bits(24);
  const rate = AAC_RATES[index];
  if (rate === undefined)
    throw new DecodeError("AudioSpecificConfig", bits.position >> 3, `reserved sampling rate index ${index}`);
  return rate;
}

/** Copies the program config element (ISO 14496-3 4.5.2.1) after its tag `101`, bit by bit because the byte alignment differs. */
function readProgramConfig(bits: BitReader): Uint8Array {
  bits.skip(1);
  if (bits.flag()) bits.skip(14);
  bits.skip(1);
  const out = new BitWriter();
  out.bits(5, 3);
  const copy = (count: number): number => {
    const value = bits.bits(count);
    out.bits(value, count);
    return value;
  };
  copy(10);
  const [front, side, back, lfe, data, coupling] = [copy(4), copy(4), copy(4), copy(2), copy(3), copy(4)];
  if (copy(1)) copy(4);
  if (copy(1)) copy(4);
  if (copy(1)) copy(3);
  for (let i = 0; i < front + side + back; i++) copy(5);
  for (let i = 0; i < lfe + data; i++) copy(4);
  for (let i = 0; i < coupling; i++) copy(5);
  bits.skip((8 - (bits.position & 7)) & 7);
  out.align();
  const comment = copy(8);
  for (let i = 0; i < comment; i++) copy(8);
  return out.bytes();
}
