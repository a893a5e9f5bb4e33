import { readU16 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { BitReader } from "./bit-reader.ts";
import { unescapeNal } from "./nal.ts";

/** NAL unit types of H.264 (ISO 14496-10 table 7-1). */
export const H264_NAL = { slice: 1, idr: 5, sei: 6, sps: 7, pps: 8, delimiter: 9 } as const;

/** An AVCDecoderConfigurationRecord, the content of `avcC` (ISO 14496-15 5.3.3.1). */
interface AvcConfig {
  /** Size of the NAL unit length fields in bytes: 1, 2 or 4. */
  readonly lengthSize: number;
  readonly sps: readonly Uint8Array[];
  readonly pps: readonly Uint8Array[];
}

/** The used fields of a sequence parameter set (ISO 14496-10 7.3.2.1.1). */
interface H264Sps {
  readonly width: number;
  readonly height: number;
  /** Such as `avc1.64001f` (RFC 6381 3.3). */
  readonly codecString: string;
}

/** Parses the content of `avcC`. Throws {@link DecodeError} if it is truncated or has another version. */
export function parseAvcConfig(bytes: Uint8Array): AvcConfig {
  if (bytes.length < 7 || bytes[0] !== 1) throw new DecodeError("avcC", 0, "expected version 1");
  let at = 5;
  const read = (count: number): Uint8Array[] => {
    const sets: Uint8Array[] = [];
    for (let i = 0; i < count; i++) {
      const end = at + 2 + (at + 2 <= bytes.length ? readU16(bytes, at) : 0);
      if (at + 2 > bytes.length || end > bytes.length)
        throw new DecodeError("avcC", at, "truncated parameter set");
      if (end > at + 2) sets.push(bytes.subarray(at + 2, end));
      at = end;
    }
    return sets;
  };
  const sps = read(bytes[at++]! & 0x1f);
  if (at >= bytes.length) return { lengthSize: (bytes[4]! & 3) + 1, sps, pps: [] };
  const pps = read(bytes[at++]!);
  return { lengthSize: (bytes[4]! & 3) + 1, sps, pps };
}

/** Returns true if a NAL unit with this header byte is a coded slice, which ends the head of an access unit. */
export function isH264Slice(header: number): boolean {
  const type = header & 0x1f;
  return type >= 1 && type <= 5;
}

/** Parses a sequence parameter set, including its NAL unit header. Throws {@link DecodeError}. */
export function parseH264Sps(nal: Uint8Array): H264Sps {
  const clean = unescapeNal(nal.subarray(0, 1024));
  const bits = new BitReader(clean, "H.264 SPS");
  bits.skip(8);
  const profile = bits.bits(8);
  const constraints = bits.bits(8);
  const level = bits.bits(8);
  bits.ue();
  const chroma = profile >= 100 || profile === 44 ? readHighProfile(bits) : 1;
  bits.ue();
  readOrderCount(bits);
  bits.ue();
  bits.skip(1);
  const widthUnits = bits.ue() + 1;
  const heightUnits = bits.ue() + 1;
  const framesOnly = bits.flag();
  if (!framesOnly) bits.skip(1);
  bits.skip(1);
  const crop = bits.flag() ? [bits.ue(), bits.ue(), bits.ue(), bits.ue()] : [0, 0, 0, 0];
  const cropX = chroma === 1 || chroma === 2 ? 2 : 1;
  const cropY = (chroma === 1 ? 2 : 1) * (framesOnly ? 1 : 2);
  return {
    width: widthUnits * 16 - (crop[0]! + crop[1]!) * cropX,
    height: heightUnits * 16 * (framesOnly ? 1 : 2) - (crop[2]! + crop[3]!) * cropY,
    codecString: `avc1.${[profile, constraints, level].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`,
  };
}

/** Reads the fields of high profiles and returns `chroma_format_idc`. */
function readHighProfile(bits: BitReader): number {
  const chroma = bits.ue();
  if (chroma === 3) bits.skip(1);
  bits.ue();
  bits.ue();
  bits.skip(1);
  const lists = bits.flag() ? (chroma === 3 ? 12 : 8) : 0;
  for (let i = 0; i < lists; i++) {
    const isSent = bits.flag();
    if (isSent) skipScalingList(bits, i < 6 ? 16 : 64);
  }
  return chroma;
}

function skipScalingList(bits: BitReader, size: number): void {
  let last = 8;
  let next = 8;
  for (let i = 0; i < size; i++) {
    if (next !== 0) next = (last + bits.se() + 256) % 256;
    if (next !== 0) last = next;
  }
}

function readOrderCount(bits: BitReader): void {
  const type = bits.ue();
  if (type === 0) bits.ue();
  if (type !== 1) return;
  bits.skip(1);
  bits.se();
  bits.se();
  const cycle = bits.ue();
  if (cycle > 255)
    throw new DecodeError("H.264 SPS", bits.position >> 3, "picture order count cycle above 255");
  for (let i = 0; i < cycle; i++) bits.se();
}
