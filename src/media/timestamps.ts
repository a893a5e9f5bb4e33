/** Ticks per second of PTS and DTS (ISO 13818-1 2.4.3.7). */
export const TICKS_PER_SECOND = 90_000;

/** PTS, DTS and PCR base have 33 bits, and wrap after 26.5 hours. */
export const TICKS_MODULUS = 2 ** 33;

/** Reduces `ticks` to the range `[0, 2^33)`. */
export function wrapTicks(ticks: number): number {
  const remainder = ticks % TICKS_MODULUS;
  return remainder < 0 ? remainder + TICKS_MODULUS : remainder;
}

/** The distance from `from` to `to` on the 33-bit clock, in ticks in `[−2^32, 2^32)`. */
export function deltaTicks(to: number, from: number): number {
  const delta = wrapTicks(to - from);
  return delta >= TICKS_MODULUS / 2 ? delta - TICKS_MODULUS : delta;
}

/** Converts seconds to whole ticks. */
export function secondsToTicks(seconds: number): number {
  return Math.round(seconds * TICKS_PER_SECOND);
}

/**
 * Returns the smallest D for which `sorted[i] − D` is a valid DTS (not after the PTS) of every frame. `pts` is in decode order, in any
 * unit; the result has the same unit.
 */
export function reorderTicks(pts: readonly number[]): number {
  const sorted = Float64Array.from(pts).sort();
  let most = 0;
  for (let i = 0; i < pts.length; i++) most = Math.max(most, sorted[i]! - pts[i]!);
  return most;
}

/**
 * Returns how many frames can precede a frame in decode order and follow it in presentation order, the reordering depth of an
 * encoder. `pts` is in decode order.
 */
export function reorderFrames(pts: readonly number[]): number {
  let most = 0;
  for (const [i, at] of pts.entries()) {
    let later = 0;
    for (let before = 0; before < i; before++) if (pts[before]! > at) later++;
    most = Math.max(most, later);
  }
  return most;
}

/**
 * Computes decode times for presentation times in decode order: the sorted presentation times minus `reorder`. The result is strictly
 * increasing and never after the PTS, even if `reorder` is too small. For a part of the frames, `sorted` holds the smallest times
 * that no earlier frame has taken.
 */
export function decodeTicks(
  pts: ArrayLike<number>,
  reorder: number,
  sorted: ArrayLike<number> = Float64Array.from(pts).sort(),
): Float64Array {
  const dts = Float64Array.from(sorted);
  let next = Number.POSITIVE_INFINITY;
  for (let i = dts.length - 1; i >= 0; i--) {
    next = Math.min(dts[i]! - reorder, pts[i]!, next - 1);
    dts[i] = next;
  }
  return dts;
}

/** Returns the first of the times that {@link decodeTicks} computes, without an array for all of them. */
export function firstDecodeTicks(pts: readonly number[], reorder: number, sorted: readonly number[]): number {
  let next = Number.POSITIVE_INFINITY;
  for (let i = pts.length - 1; i >= 0; i--) next = Math.min(sorted[i]! - reorder, pts[i]!, next - 1);
  return next;
}
