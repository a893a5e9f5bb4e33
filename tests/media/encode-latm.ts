import { BitWriter } from "../../src/media/bit-writer.ts";

/** Fields of a frame of LATM (ISO 14496-3 1.7.3) that tests set; the others have the usual values. */
export interface LatmFields {
  /** False: the frame refers to the configuration before it. */
  readonly hasConfig?: boolean;
  readonly version?: 0 | 1;
  /** `audioMuxVersionA`, for version 1. */
  readonly versionA?: 0 | 1;
  /** Counted from 0, as in the stream. */
  readonly subframes?: number;
  readonly programs?: number;
  readonly layers?: number;
  /** 5: explicit SBR around AAC-LC. */
  readonly objectType?: number;
  /** 15: the rate follows in 24 bits. */
  readonly rateIndex?: number;
  readonly channels?: number;
  readonly hasShortFrames?: boolean;
  readonly frameLengthType?: number;
  /** Bits of other data after the audio. */
  readonly otherBits?: number;
  /** Version 1: bits after the AudioSpecificConfig that its length includes. */
  readonly fillBits?: number;
}

/** Writes one frame of LATM in LOAS. */
export function loasFrame(audio: Uint8Array, fields: LatmFields = {}): Uint8Array<ArrayBuffer> {
  const { hasConfig = true, otherBits = 0 } = fields;
  const out = new BitWriter();
  out.bits(hasConfig ? 0 : 1, 1);
  if (hasConfig) writeMux(out, fields);
  for (let left = audio.length; ; left -= 255) {
    out.bits(Math.min(left, 255), 8);
    if (left < 255) break;
  }
  for (const byte of audio) out.bits(byte, 8);
  for (let i = 0; i < otherBits; i++) out.bits(1, 1);
  out.align();
  const body = out.bytes();
  return Uint8Array.of(0x56, 0xe0 | (body.length >> 8), body.length & 255, ...body);
}

function writeMux(out: BitWriter, fields: LatmFields): void {
  const { version = 0, versionA = 0, subframes = 0, programs = 0, layers = 0 } = fields;
  const { frameLengthType = 0, otherBits = 0, fillBits = 0, rateIndex = 3, objectType = 2 } = fields;
  out.bits(version, 1);
  if (version === 1) out.bits(versionA, 1);
  if (version === 1) writeValue(out, 255); // taraBufferFullness
  out.bits(1, 1); // allStreamsSameTimeFraming
  out.bits(subframes, 6);
  out.bits(programs, 4);
  out.bits(layers, 3);
  const configBits = 16 + (objectType === 5 ? 9 : 0) + (rateIndex === 15 ? 24 : 0);
  if (version === 1) writeValue(out, configBits + fillBits);
  out.bits(objectType, 5);
  out.bits(rateIndex, 4);
  if (rateIndex === 15) out.bits(48_001, 24);
  out.bits(fields.channels ?? 2, 4);
  if (objectType === 5) out.bits((3 << 5) | 2, 9); // the rate with SBR, and the core coder
  out.bits(fields.hasShortFrames ? 0b100 : 0, 3);
  for (let i = 0; i < fillBits; i++) out.bits(0, 1);
  out.bits(frameLengthType, 3);
  out.bits(255, 8); // latmBufferFullness
  out.bits(otherBits > 0 ? 1 : 0, 1);
  if (otherBits > 0 && version === 1) writeValue(out, otherBits);
  if (otherBits > 0 && version === 0) out.bits(otherBits, 9); // no escape, then eight bits
  out.bits(0, 1); // crcCheckPresent
}

function writeValue(out: BitWriter, value: number): void {
  out.bits(1, 2);
  out.bits(value, 16);
}
