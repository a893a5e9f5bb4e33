import { BitWriter } from "../../src/media/bit-writer.ts";

/** How a channel is written: as it is, or by the differences of second order in one partition of Rice codes. */
export type FlacMethod = "verbatim" | "fixed" | "linear";

/**
 * Writes a FLAC frame of 192 samples (RFC 9639 9) at 48 kHz with 16 bits.
 * @param code the channel code: the number of channels less one, or 8 to 10 for stereo with a difference.
 * @param subframes what the channels contain; difference channels have 17 bits.
 */
export function flacFrame(
  code: number,
  subframes: readonly Int32Array[],
  method: FlacMethod,
): Uint8Array<ArrayBuffer> {
  const bits = new BitWriter();
  for (const [value, count] of [
    [0xfff8, 16],
    [1, 4],
    [10, 4],
    [code, 4],
    [4, 3],
    [0, 1],
    [0, 8],
    [0, 8],
  ] as const)
    bits.bits(value, count);
  for (const [channel, samples] of subframes.entries()) {
    const isSide = code >= 8 && (channel === 0) === (code === 9);
    writeSubframe(bits, samples, 16 + (isSide ? 1 : 0), method);
  }
  bits.align();
  bits.bits(0, 16);
  return withFlacChecksum(bits.bytes());
}

/** Corrects the checksum at the end of a frame. */
export function withFlacChecksum(frame: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (frame.length < 2) return frame;
  let crc = 0;
  for (const byte of frame.subarray(0, -2)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x8005 : crc << 1) & 0xffff;
  }
  frame.set([crc >> 8, crc & 255], frame.length - 2);
  return frame;
}

/** Parameter of the Rice codes. */
const RICE = 6;

function writeSubframe(bits: BitWriter, samples: Int32Array, sampleBits: number, method: FlacMethod): void {
  bits.bits({ verbatim: 1, fixed: 8 + 2, linear: 31 + 2 }[method] << 1, 8);
  if (method === "verbatim") {
    for (const sample of samples) bits.bits(sample, sampleBits);
    return;
  }
  for (const sample of samples.subarray(0, 2)) bits.bits(sample, sampleBits);
  if (method === "linear") {
    // Coefficients of 6 bits, 8 and −4 by 4, which is 2 and −1.
    for (const [value, count] of [
      [5, 4],
      [2, 5],
      [8, 6],
      [-4, 6],
    ] as const)
      bits.bits(value, count);
  }
  for (const [value, count] of [
    [0, 2],
    [0, 4],
    [RICE, 4],
  ] as const)
    bits.bits(value, count);
  for (let i = 2; i < samples.length; i++) {
    const residual = samples[i]! - 2 * samples[i - 1]! + samples[i - 2]!;
    const folded = residual < 0 ? -2 * residual - 1 : 2 * residual;
    for (let zeros = folded >> RICE; zeros > 0; zeros--) bits.bits(0, 1);
    bits.bits(1, 1);
    bits.bits(folded, RICE);
  }
}
