/** Ticks of the MPEG system clock a second (ISO 13818-1 2.4.3.7). */
export const TICKS_PER_SECOND = 90_000;

/** PTS, DTS and PCR base have 33 bits: they wrap after 26.5 hours. */
export const TICKS_MODULUS = 2 ** 33;

/** `ticks` brought into 0 … 2^33 − 1, as it is written. */
export function wrapTicks(ticks: number): number {
  const rest = ticks % TICKS_MODULUS;
  return rest < 0 ? rest + TICKS_MODULUS : rest;
}

/** How far `to` lies after `from` on the 33-bit clock: −2^32 … 2^32 − 1 ticks, the shorter way round. */
export function deltaTicks(to: number, from: number): number {
  const delta = wrapTicks(to - from);
  return delta >= TICKS_MODULUS / 2 ? delta - TICKS_MODULUS : delta;
}

/** Whole ticks of a time in seconds. */
export function secondsToTicks(seconds: number): number {
  return Math.round(seconds * TICKS_PER_SECOND);
}

/**
 * How long decoding must run ahead of presentation so that `sorted[i] − D` is a valid DTS for each frame (never after
 * its PTS). `pts` is in decode order, in any unit; the result is in the same unit.
 */
export function reorderTicks(pts: readonly number[]): number {
  const sorted = Float64Array.from(pts).sort();
  let most = 0;
  for (let i = 0; i < pts.length; i++) most = Math.max(most, sorted[i]! - pts[i]!);
  return most;
}

/**
 * Decode times for frames whose presentation times are known, in decode order: the sorted presentation times, `reorder`
 * earlier. Strictly increasing, and never after the PTS, even where `reorder` was measured too small.
 */
export function decodeTicks(pts: ArrayLike<number>, reorder: number): Float64Array {
  const dts = Float64Array.from(pts).sort();
  let next = Number.POSITIVE_INFINITY;
  for (let i = dts.length - 1; i >= 0; i--) {
    next = Math.min(dts[i]! - reorder, pts[i]!, next - 1);
    dts[i] = next;
  }
  return dts;
}
