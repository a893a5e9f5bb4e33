import type { BitWriter } from "./bit-writer.ts";
import { MAX_LEVEL, writeLevels } from "./h264-encode-cavlc.ts";
import type { FlatPicture } from "./h264-encode-picture.ts";

/** What a slice is made of. */
export interface SliceInput {
  readonly isKey: boolean;
  /** What is to be shown. */
  readonly picture: FlatPicture;
  /** What was asked for before: a macroblock that is the same again is skipped. Becomes `picture`. */
  readonly asked: FlatPicture;
  /** What decoders show before, and after. */
  readonly shown: FlatPicture;
}

/** The quantiser of every macroblock: a step of DC is a third of a grey level, which no eye sees. */
export const QUANTISER = 18;

/** LevelScale(0, 0, 0) times 16 at a quantiser of 6n: 10 · 16 (8.5.9). */
const SCALE = 160;
/** Of luma; that of chroma is the same below 30 (table 8-15). */
const SHIFT = QUANTISER / 6;
/** Grey levels that one level of a luma DC is worth before the Hadamard transform. */
const LUMA_STEP = (SCALE * 2 ** SHIFT) / 64 / 64;
/** The zig-zag scan of a 4×4 block (6.4.3): raster positions. */
const ZIGZAG = [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15];
/** Intra 16×16 macroblocks begin at 1 in I slices, at 6 in P slices (tables 7-11, 7-13). */
const MB_TYPE = { key: 1, other: 6, dc: 2, withChroma: 4 } as const;

const residual = new Float64Array(16);
const transformed = new Int32Array(16);
const lumaLevels = new Int32Array(16);
const blueLevels = new Int32Array(4);
const redLevels = new Int32Array(4);

/** Writes the macroblocks of a picture that is one slice, and lets `shown` and `asked` follow. */
export function writeSlice(
  out: BitWriter,
  { columns, rows }: { readonly columns: number; readonly rows: number },
  { isKey, picture, asked, shown }: SliceInput,
): void {
  let skipped = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const place = { row, column, columns };
      if (!isKey && isSame(picture, asked, place)) {
        skipped++;
        continue;
      }
      if (!isKey) out.ue(skipped);
      skipped = 0;
      writeMacroblock(out, isKey, picture, shown, place);
    }
  }
  if (!isKey && skipped > 0) out.ue(skipped);
  asked.luma.set(picture.luma);
  asked.blue.set(picture.blue);
  asked.red.set(picture.red);
}

interface Place {
  readonly row: number;
  readonly column: number;
  readonly columns: number;
}

function isSame(a: FlatPicture, b: FlatPicture, place: Place): boolean {
  return (
    isSameSquare(a.luma, b.luma, place, 4) &&
    isSameSquare(a.blue, b.blue, place, 2) &&
    isSameSquare(a.red, b.red, place, 2)
  );
}

function isSameSquare(a: Uint8Array, b: Uint8Array, { row, column, columns }: Place, side: number): boolean {
  for (let y = 0; y < side; y++) {
    const from = (row * side + y) * columns * side + column * side;
    for (let x = from; x < from + side; x++) if (a[x] !== b[x]) return false;
  }
  return true;
}

/** 7.3.5: predicted from the mean of its neighbours (Intra_16x16_DC, chroma DC), the rest as DC levels. */
function writeMacroblock(
  out: BitWriter,
  isKey: boolean,
  picture: FlatPicture,
  shown: FlatPicture,
  place: Place,
): void {
  codeLuma(picture.luma, shown.luma, place);
  const hasBlue = codeChroma(picture.blue, shown.blue, place, blueLevels);
  const hasRed = codeChroma(picture.red, shown.red, place, redLevels);
  const hasChroma = hasBlue || hasRed;
  out.ue((isKey ? MB_TYPE.key : MB_TYPE.other) + MB_TYPE.dc + (hasChroma ? MB_TYPE.withChroma : 0));
  out.ue(0); // intra_chroma_pred_mode: DC
  out.se(0); // mb_qp_delta
  writeLevels(out, lumaLevels);
  if (!hasChroma) return;
  writeLevels(out, blueLevels);
  writeLevels(out, redLevels);
}

/** Fills `lumaLevels`, and `shown` with what they bring about. */
function codeLuma(wanted: Uint8Array, shown: Uint8Array, place: Place): void {
  const { row, column, columns } = place;
  const width = columns * 4;
  const start = row * 4 * width + column * 4;
  const predicted = predict(shown, place, 4);
  for (let i = 0; i < 16; i++) residual[i] = wanted[start + (i >> 2) * width + (i & 3)]! - predicted;
  hadamard(residual);
  for (let i = 0; i < 16; i++) {
    const level = Math.round(residual[i]! / (16 * LUMA_STEP));
    transformed[i] = Math.max(-MAX_LEVEL, Math.min(MAX_LEVEL, level));
  }
  for (let i = 0; i < 16; i++) lumaLevels[i] = transformed[ZIGZAG[i]!]!;
  hadamard(transformed);
  for (let i = 0; i < 16; i++) {
    // 8.5.10, then the inverse transform of a block that has nothing but its DC (8.5.12).
    const dc = (transformed[i]! * SCALE + (1 << (5 - SHIFT))) >> (6 - SHIFT);
    shown[start + (i >> 2) * width + (i & 3)] = clip(predicted + ((dc + 32) >> 6));
  }
}

/** The same for four chroma values; true where a level is not zero. */
function codeChroma(wanted: Uint8Array, shown: Uint8Array, place: Place, levels: Int32Array): boolean {
  const { row, column, columns } = place;
  const width = columns * 2;
  const start = row * 2 * width + column * 2;
  const at = [start, start + 1, start + width, start + width + 1];
  const predicted = predictChroma(shown, place);
  const [a, b, c, d] = at.map((cell, i) => wanted[cell]! - predicted[i]!) as [number, number, number, number];
  const step = (SCALE * 2 ** SHIFT) / 32 / 64;
  const sums = [a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d];
  for (let i = 0; i < 4; i++) levels[i] = Math.round(sums[i]! / (4 * step));
  const [p, q, r, s] = levels as unknown as [number, number, number, number];
  const values = [p + q + r + s, p - q + r - s, p + q - r - s, p - q - r + s];
  for (let i = 0; i < 4; i++) {
    const dc = (values[i]! * SCALE * 2 ** SHIFT) >> 5; // 8.5.11.2
    shown[at[i]!] = clip(predicted[i]! + ((dc + 32) >> 6));
  }
  return p !== 0 || q !== 0 || r !== 0 || s !== 0;
}

/** 8.3.3.3: the mean of the row above and the column to the left, as far as they are there. */
function predict(shown: Uint8Array, { row, column, columns }: Place, side: number): number {
  const width = columns * side;
  const start = row * side * width + column * side;
  let sum = 0;
  let count = 0;
  if (row > 0) for (let x = 0; x < side; x++, count++) sum += shown[start - width + x]!;
  if (column > 0) for (let y = 0; y < side; y++, count++) sum += shown[start - 1 + y * width]!;
  // Each square stands for as many pixels as the others, so that the rounding is that of the pixels.
  return count === 0 ? 128 : Math.floor(sum / count + 0.5);
}

/** 8.3.4.1 to 8.3.4.3: each 4×4 block from the square above and the one to the left; off the diagonal from one of them alone. */
function predictChroma(shown: Uint8Array, { row, column, columns }: Place): number[] {
  const width = columns * 2;
  const start = row * 2 * width + column * 2;
  const above = row > 0 ? [shown[start - width]!, shown[start - width + 1]!] : undefined;
  const left = column > 0 ? [shown[start - 1]!, shown[start - 1 + width]!] : undefined;
  const mean = (x: number, y: number) => {
    if (above && left) return (above[x]! + left[y]! + 1) >> 1;
    return above?.[x] ?? left?.[y] ?? 128;
  };
  return [mean(0, 0), above?.[1] ?? left?.[0] ?? 128, left?.[1] ?? above?.[0] ?? 128, mean(1, 1)];
}

/** The 4×4 Hadamard transform in place; twice is 16 times the identity. */
function hadamard(block: Float64Array | Int32Array): void {
  for (let row = 0; row < 16; row += 4) butterfly(block, row, 1);
  for (let column = 0; column < 4; column++) butterfly(block, column, 4);
}

/** Rows `++++`, `++−−`, `+−−+`, `+−+−`, as 8.5.10 has them. */
function butterfly(block: Float64Array | Int32Array, at: number, step: number): void {
  const [a, b, c, d] = [block[at]!, block[at + step]!, block[at + 2 * step]!, block[at + 3 * step]!];
  block[at] = a + b + c + d;
  block[at + step] = a + b - c - d;
  block[at + 2 * step] = a - b - c + d;
  block[at + 3 * step] = a - b + c - d;
}

function clip(value: number): number {
  return Math.max(0, Math.min(255, value));
}
