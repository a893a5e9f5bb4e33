import type { BitWriter } from "./bit-writer.ts";
import { MAX_LEVEL, writeLevels } from "./h264-encode-cavlc.ts";
import type { FlatPicture } from "./h264-encode-picture.ts";

/** Input of {@link writeSlice}. */
interface SliceInput {
  readonly isKey: boolean;
  /** The picture to encode. */
  readonly picture: FlatPicture;
  /** The previous `picture`; macroblocks equal to it are skipped. Updated to `picture`. */
  readonly previous: FlatPicture;
  /** The previous picture as decoders reconstruct it. Updated to the reconstruction of `picture`. */
  readonly decoded: FlatPicture;
}

/** Quantiser of every macroblock: a DC step is a third of a grey level, which is not visible. */
export const QUANTISER = 18;

/** LevelScale(0, 0, 0) times 16 at a quantiser of 6n: 10 · 16 (8.5.9). */
const SCALE = 160;
/** For luma; the chroma quantiser is equal below 30 (table 8-15). */
const SHIFT = QUANTISER / 6;
/** Grey levels per luma DC level before the Hadamard transform. */
const LUMA_STEP = (SCALE * 2 ** SHIFT) / 64 / 64;
/** The zig-zag scan of a 4×4 block (6.4.3): raster positions. */
const ZIGZAG = [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15];
/** Intra 16×16 macroblocks begin at 1 in I slices, at 6 in P slices (tables 7-11, 7-13). */
const MB_TYPE = { key: 1, other: 6, dc: 2, withChroma: 4 } as const;

const residual = new Float64Array(16);
const transformed = new Int32Array(16);
const lumaLevels = new Int32Array(16);
const cbLevels = new Int32Array(4);
const crLevels = new Int32Array(4);

/** Writes the macroblocks of a picture that is one slice (ISO 14496-10 7.3.4), and updates `decoded` and `previous`. */
export function writeSlice(
  out: BitWriter,
  { columns, rows }: { readonly columns: number; readonly rows: number },
  { isKey, picture, previous, decoded }: SliceInput,
): void {
  let skipped = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const place = { row, column, columns };
      if (!isKey && isSame(picture, previous, place)) {
        skipped++;
        continue;
      }
      if (!isKey) out.ue(skipped);
      skipped = 0;
      writeMacroblock(out, isKey, picture, decoded, place);
    }
  }
  if (!isKey && skipped > 0) out.ue(skipped);
  previous.luma.set(picture.luma);
  previous.cb.set(picture.cb);
  previous.cr.set(picture.cr);
}

interface Place {
  readonly row: number;
  readonly column: number;
  readonly columns: number;
}

function isSame(a: FlatPicture, b: FlatPicture, place: Place): boolean {
  return (
    isSameSquare(a.luma, b.luma, place, 4) &&
    isSameSquare(a.cb, b.cb, place, 2) &&
    isSameSquare(a.cr, b.cr, place, 2)
  );
}

function isSameSquare(a: Uint8Array, b: Uint8Array, { row, column, columns }: Place, side: number): boolean {
  for (let y = 0; y < side; y++) {
    const from = (row * side + y) * columns * side + column * side;
    for (let x = from; x < from + side; x++) if (a[x] !== b[x]) return false;
  }
  return true;
}

/** Writes a macroblock (7.3.5), predicted from the mean of its neighbours (Intra_16x16_DC, chroma DC), the residual as DC levels. */
function writeMacroblock(
  out: BitWriter,
  isKey: boolean,
  picture: FlatPicture,
  decoded: FlatPicture,
  place: Place,
): void {
  codeLuma(picture.luma, decoded.luma, place);
  const hasCb = codeChroma(picture.cb, decoded.cb, place, cbLevels);
  const hasCr = codeChroma(picture.cr, decoded.cr, place, crLevels);
  const hasChroma = hasCb || hasCr;
  out.ue((isKey ? MB_TYPE.key : MB_TYPE.other) + MB_TYPE.dc + (hasChroma ? MB_TYPE.withChroma : 0));
  out.ue(0); // intra_chroma_pred_mode: DC
  out.se(0); // mb_qp_delta
  writeLevels(out, lumaLevels);
  if (!hasChroma) return;
  writeLevels(out, cbLevels);
  writeLevels(out, crLevels);
}

/** Computes `lumaLevels`, and their reconstruction in `decoded`. */
function codeLuma(target: Uint8Array, decoded: Uint8Array, place: Place): void {
  const { row, column, columns } = place;
  const width = columns * 4;
  const start = row * 4 * width + column * 4;
  const predicted = predict(decoded, place, 4);
  for (let i = 0; i < 16; i++) residual[i] = target[start + (i >> 2) * width + (i & 3)]! - predicted;
  hadamard(residual);
  for (let i = 0; i < 16; i++) {
    const level = Math.round(residual[i]! / (16 * LUMA_STEP));
    transformed[i] = Math.max(-MAX_LEVEL, Math.min(MAX_LEVEL, level));
  }
  for (let i = 0; i < 16; i++) lumaLevels[i] = transformed[ZIGZAG[i]!]!;
  hadamard(transformed);
  for (let i = 0; i < 16; i++) {
    // 8.5.10, then the inverse transform of a block with DC only (8.5.12).
    const dc = (transformed[i]! * SCALE + (1 << (5 - SHIFT))) >> (6 - SHIFT);
    decoded[start + (i >> 2) * width + (i & 3)] = clip(predicted + ((dc + 32) >> 6));
  }
}

/** The same for four chroma values. Returns true if a level is not zero. */
function codeChroma(target: Uint8Array, decoded: Uint8Array, place: Place, levels: Int32Array): boolean {
  const { row, column, columns } = place;
  const width = columns * 2;
  const start = row * 2 * width + column * 2;
  const at = [start, start + 1, start + width, start + width + 1];
  const predicted = predictChroma(decoded, place);
  const [a, b, c, d] = at.map((cell, i) => target[cell]! - predicted[i]!) as [number, number, number, number];
  const step = (SCALE * 2 ** SHIFT) / 32 / 64;
  const sums = [a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d];
  for (let i = 0; i < 4; i++) levels[i] = Math.round(sums[i]! / (4 * step));
  const [p, q, r, s] = levels as unknown as [number, number, number, number];
  const values = [p + q + r + s, p - q + r - s, p + q - r - s, p - q - r + s];
  for (let i = 0; i < 4; i++) {
    const dc = (values[i]! * SCALE * 2 ** SHIFT) >> 5; // 8.5.11.2
    decoded[at[i]!] = clip(predicted[i]! + ((dc + 32) >> 6));
  }
  return p !== 0 || q !== 0 || r !== 0 || s !== 0;
}

/** The mean of the row above and the column to the left, as far as they exist (8.3.3.3). */
function predict(decoded: Uint8Array, { row, column, columns }: Place, side: number): number {
  const width = columns * side;
  const start = row * side * width + column * side;
  let sum = 0;
  let count = 0;
  if (row > 0) for (let x = 0; x < side; x++, count++) sum += decoded[start - width + x]!;
  if (column > 0) for (let y = 0; y < side; y++, count++) sum += decoded[start - 1 + y * width]!;
  // All squares have the same number of pixels, so the rounding equals that of the pixel mean.
  return count === 0 ? 128 : Math.floor(sum / count + 0.5);
}

/** Predicts each 4×4 chroma block from the squares above and to the left; off the diagonal from one of them (8.3.4.1 to 8.3.4.3). */
function predictChroma(decoded: Uint8Array, { row, column, columns }: Place): number[] {
  const width = columns * 2;
  const start = row * 2 * width + column * 2;
  const above = row > 0 ? [decoded[start - width]!, decoded[start - width + 1]!] : undefined;
  const left = column > 0 ? [decoded[start - 1]!, decoded[start - 1 + width]!] : undefined;
  const mean = (x: number, y: number) => {
    if (above && left) return (above[x]! + left[y]! + 1) >> 1;
    return above?.[x] ?? left?.[y] ?? 128;
  };
  return [mean(0, 0), above?.[1] ?? left?.[0] ?? 128, left?.[1] ?? above?.[0] ?? 128, mean(1, 1)];
}

/** The 4×4 Hadamard transform in place; applied twice it multiplies by 16. */
function hadamard(block: Float64Array | Int32Array): void {
  for (let row = 0; row < 16; row += 4) butterfly(block, row, 1);
  for (let column = 0; column < 4; column++) butterfly(block, column, 4);
}

/** The rows `++++`, `++−−`, `+−−+`, `+−+−` of 8.5.10. */
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
