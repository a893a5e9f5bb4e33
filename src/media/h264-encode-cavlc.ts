import type { BitWriter } from "./bit-writer.ts";

/** A table of variable-length codes: length and bits of the code for each value. */
interface Codes {
  readonly lengths: readonly number[];
  readonly bits: readonly number[];
}

/** `coeff_token` for 0 ≤ nC < 2 (ISO 14496-10 table 9-5), indexed by 4 · total coefficients + trailing ones. */
const TOKENS: Codes = {
  lengths: [
    1, 0, 0, 0, 6, 2, 0, 0, 8, 6, 3, 0, 9, 8, 7, 5, 10, 9, 8, 6, 11, 10, 9, 7, 13, 11, 10, 8, 13, 13, 11, 9,
    13, 13, 13, 10, 14, 14, 13, 11, 14, 14, 14, 13, 15, 15, 14, 14, 15, 15, 15, 14, 16, 15, 15, 15, 16, 16,
    16, 15, 16, 16, 16, 16, 16, 16, 16, 16,
  ],
  bits: [
    1, 0, 0, 0, 5, 1, 0, 0, 7, 4, 1, 0, 7, 6, 5, 3, 7, 6, 5, 3, 7, 6, 5, 4, 15, 6, 5, 4, 11, 14, 5, 4, 8, 10,
    13, 4, 15, 14, 9, 4, 11, 10, 13, 12, 15, 14, 9, 12, 11, 10, 13, 8, 15, 1, 9, 12, 11, 14, 13, 8, 7, 10, 9,
    12, 4, 6, 5, 8,
  ],
};

/** `coeff_token` for the four DC coefficients of 4:2:0 chroma (nC = −1). */
const CHROMA_TOKENS: Codes = {
  lengths: [2, 0, 0, 0, 6, 1, 0, 0, 6, 6, 3, 0, 6, 7, 7, 6, 6, 8, 8, 7],
  bits: [1, 0, 0, 0, 7, 1, 0, 0, 4, 6, 1, 0, 3, 3, 2, 5, 2, 3, 2, 0],
};

/** `total_zeros` of a block of 16 levels, indexed by number of coefficients − 1 (tables 9-7 and 9-8). */
const ZEROS: readonly Codes[] = [
  {
    lengths: [1, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 9],
    bits: [1, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 1],
  },
  {
    lengths: [3, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 6, 6, 6, 6],
    bits: [7, 6, 5, 4, 3, 5, 4, 3, 2, 3, 2, 3, 2, 1, 0],
  },
  { lengths: [4, 3, 3, 3, 4, 4, 3, 3, 4, 5, 5, 6, 5, 6], bits: [5, 7, 6, 5, 4, 3, 4, 3, 2, 3, 2, 1, 1, 0] },
  { lengths: [5, 3, 4, 4, 3, 3, 3, 4, 3, 4, 5, 5, 5], bits: [3, 7, 5, 4, 6, 5, 4, 3, 3, 2, 2, 1, 0] },
  { lengths: [4, 4, 4, 3, 3, 3, 3, 3, 4, 5, 4, 5], bits: [5, 4, 3, 7, 6, 5, 4, 3, 2, 1, 1, 0] },
  { lengths: [6, 5, 3, 3, 3, 3, 3, 3, 4, 3, 6], bits: [1, 1, 7, 6, 5, 4, 3, 2, 1, 1, 0] },
  { lengths: [6, 5, 3, 3, 3, 2, 3, 4, 3, 6], bits: [1, 1, 5, 4, 3, 3, 2, 1, 1, 0] },
  { lengths: [6, 4, 5, 3, 2, 2, 3, 3, 6], bits: [1, 1, 1, 3, 3, 2, 2, 1, 0] },
  { lengths: [6, 6, 4, 2, 2, 3, 2, 5], bits: [1, 0, 1, 3, 2, 1, 1, 1] },
  { lengths: [5, 5, 3, 2, 2, 2, 4], bits: [1, 0, 1, 3, 2, 1, 1] },
  { lengths: [4, 4, 3, 3, 1, 3], bits: [0, 1, 1, 2, 1, 3] },
  { lengths: [4, 4, 2, 1, 3], bits: [0, 1, 1, 1, 1] },
  { lengths: [3, 3, 1, 2], bits: [0, 1, 1, 1] },
  { lengths: [2, 2, 1], bits: [0, 1, 1] },
  { lengths: [1, 1], bits: [0, 1] },
];

/** `total_zeros` of the four chroma DC coefficients (table 9-9). */
const CHROMA_ZEROS: readonly Codes[] = [
  { lengths: [1, 2, 3, 3], bits: [1, 1, 1, 0] },
  { lengths: [1, 2, 2], bits: [1, 1, 0] },
  { lengths: [1, 1], bits: [1, 0] },
];

/** `run_before`, indexed by remaining zeros − 1; the last entry applies if more than six zeros remain (table 9-10). */
const RUNS: readonly Codes[] = [
  { lengths: [1, 1], bits: [1, 0] },
  { lengths: [1, 2, 2], bits: [1, 1, 0] },
  { lengths: [2, 2, 2, 2], bits: [3, 2, 1, 0] },
  { lengths: [2, 2, 2, 3, 3], bits: [3, 2, 1, 1, 0] },
  { lengths: [2, 2, 3, 3, 3, 3], bits: [3, 2, 3, 2, 1, 0] },
  { lengths: [2, 3, 3, 3, 3, 3, 3], bits: [3, 0, 1, 3, 2, 5, 4] },
  {
    lengths: [3, 3, 3, 3, 3, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11],
    bits: [7, 6, 5, 4, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1],
  },
];

/** Larger levels need codes that the baseline profile does not have (9.2.2.1). */
export const MAX_LEVEL = 2000;

/**
 * Writes one block of transform coefficient levels (ISO 14496-10 7.3.5.3.2, 9.2): 16 levels of luma DC (nC 0) or 4 of chroma DC.
 * @param levels the levels in scan order.
 */
export function writeLevels(out: BitWriter, levels: Int32Array): void {
  const isChroma = levels.length === 4;
  const nonZero: number[] = [];
  for (let i = levels.length - 1; i >= 0; i--) if (levels[i] !== 0) nonZero.push(i);
  const total = nonZero.length;
  let ones = 0;
  while (ones < Math.min(3, total) && Math.abs(levels[nonZero[ones]!]!) === 1) ones++;
  put(out, isChroma ? CHROMA_TOKENS : TOKENS, 4 * total + ones);
  if (total === 0) return;
  for (let i = 0; i < ones; i++) out.bits(levels[nonZero[i]!]! < 0 ? 1 : 0, 1);
  writeValues(out, levels, nonZero, ones);
  let zeros = nonZero[0]! + 1 - total;
  if (total < levels.length) put(out, (isChroma ? CHROMA_ZEROS : ZEROS)[total - 1]!, zeros);
  for (let i = 0; i + 1 < total && zeros > 0; i++) {
    const run = nonZero[i]! - nonZero[i + 1]! - 1;
    put(out, RUNS[Math.min(zeros, 7) - 1]!, run);
    zeros -= run;
  }
}

/** Writes the levels that are not trailing ones, highest frequency first. */
function writeValues(out: BitWriter, levels: Int32Array, nonZero: readonly number[], ones: number): void {
  let suffixBits = nonZero.length > 10 && ones < 3 ? 1 : 0;
  for (let i = ones; i < nonZero.length; i++) {
    const level = levels[nonZero[i]!]!;
    let code = level > 0 ? 2 * level - 2 : -2 * level - 1;
    // If there are fewer than three trailing ones, the first level cannot be ±1, so its magnitude is coded one smaller.
    if (i === ones && ones < 3) code -= 2;
    writeLevel(out, code, suffixBits);
    if (suffixBits === 0) suffixBits = 1;
    if (Math.abs(level) > 3 << (suffixBits - 1) && suffixBits < 6) suffixBits++;
  }
}

function writeLevel(out: BitWriter, code: number, suffixBits: number): void {
  if (suffixBits === 0 && code < 14) prefixed(out, code, 0, 0);
  else if (suffixBits === 0 && code < 30) prefixed(out, 14, code - 14, 4);
  else if (suffixBits > 0 && code < 15 << suffixBits)
    prefixed(out, code >> suffixBits, code & ((1 << suffixBits) - 1), suffixBits);
  else prefixed(out, 15, code - (suffixBits === 0 ? 30 : 15 << suffixBits), 12);
}

function prefixed(out: BitWriter, prefix: number, suffix: number, suffixBits: number): void {
  out.bits(1, prefix + 1);
  out.bits(suffix, suffixBits);
}

function put(out: BitWriter, codes: Codes, value: number): void {
  out.bits(codes.bits[value]!, codes.lengths[value]!);
}
