import { readU16 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { BitReader } from "./bit-reader.ts";
import { unescapeNal } from "./nal.ts";

/** NAL unit types of HEVC (ISO 23008-2 table 7-1). */
export const HEVC_NAL = { vps: 32, sps: 33, pps: 34, delimiter: 35 } as const;

/** An HEVCDecoderConfigurationRecord, the content of `hvcC` (ISO 14496-15 8.3.3.1). */
interface HevcConfig {
  /** Size of the NAL unit length fields in bytes: 1, 2 or 4. */
  readonly lengthSize: number;
  /** VPS, SPS, PPS (and SEI) units, in the order of the box. */
  readonly units: readonly Uint8Array[];
}

/** The used fields of a sequence parameter set (ISO 23008-2 7.3.2.2). */
interface HevcSps {
  readonly width: number;
  readonly height: number;
  /** Such as `hvc1.1.6.L93.90` (ISO 14496-15 Annex E). */
  readonly codecString: string;
}

/** Returns the NAL unit type from the first byte of the header. */
export function hevcNalType(header: number): number {
  return (header >> 1) & 0x3f;
}

/** Returns true if the NAL unit type is an intra random access point: BLA, IDR or CRA (ISO 23008-2 table 7-1). */
export function isHevcKey(type: number): boolean {
  return type >= 16 && type <= 23;
}

/** Parses the content of `hvcC`. Throws {@link DecodeError} if it is truncated. */
export function parseHevcConfig(bytes: Uint8Array): HevcConfig {
  if (bytes.length < 23) throw new DecodeError("hvcC", bytes.length, "expected at least 23 bytes");
  const units: Uint8Array[] = [];
  let at = 23;
  for (let array = 0; array < bytes[22]!; array++) {
    if (at + 3 > bytes.length) throw new DecodeError("hvcC", at, "truncated array");
    const count = readU16(bytes, at + 1);
    at += 3;
    for (let i = 0; i < count; i++) {
      const end = at + 2 + (at + 2 <= bytes.length ? readU16(bytes, at) : 0);
      if (at + 2 > bytes.length || end > bytes.length)
        throw new DecodeError("hvcC", at, "truncated parameter set");
      if (end > at + 2) units.push(bytes.subarray(at + 2, end));
      at = end;
    }
  }
  return { lengthSize: (bytes[21]! & 3) + 1, units };
}

/** Parses a sequence parameter set, including its two-byte NAL unit header. Throws {@link DecodeError}. */
export function parseHevcSps(nal: Uint8Array): HevcSps {
  const clean = unescapeNal(nal.subarray(0, 2048));
  const bits = new BitReader(clean, "HEVC SPS");
  bits.skip(16 + 4);
  const subLayers = bits.bits(3);
  bits.skip(1);
  const codecString = readProfile(bits, subLayers);
  bits.ue();
  const chroma = bits.ue();
  if (chroma === 3) bits.skip(1);
  let width = bits.ue();
  let height = bits.ue();
  if (bits.flag()) {
    const crop = [bits.ue(), bits.ue(), bits.ue(), bits.ue()];
    width -= (crop[0]! + crop[1]!) * (chroma === 1 || chroma === 2 ? 2 : 1);
    height -= (crop[2]! + crop[3]!) * (chroma === 1 ? 2 : 1);
  }
  return { width, height, codecString };
}

function readProfile(bits: BitReader, subLayers: number): string {
  const space = bits.bits(2);
  const tier = bits.flag() ? "H" : "L";
  const profile = bits.bits(5);
  const compatibility = bits.bits(32);
  const constraints = Array.from({ length: 6 }, () => bits.bits(8));
  const level = bits.bits(8);
  const present: [boolean, boolean][] = [];
  for (let i = 0; i < subLayers; i++) present.push([bits.flag(), bits.flag()]);
  if (subLayers > 0) bits.skip(2 * (8 - subLayers));
  for (const [hasProfile, hasLevel] of present) bits.skip((hasProfile ? 88 : 0) + (hasLevel ? 8 : 0));
  while (constraints.at(-1) === 0) constraints.pop();
  const parts = [
    `${["", "A", "B", "C"][space]}${profile}`,
    reverseBits(compatibility).toString(16),
    `${tier}${level}`,
    ...constraints.map((byte) => byte.toString(16)),
  ];
  return `hvc1.${parts.join(".")}`;
}

function reverseBits(value: number): number {
  let reversed = 0;
  for (let i = 0; i < 32; i++) reversed = reversed * 2 + ((value >>> i) & 1);
  return reversed;
}
