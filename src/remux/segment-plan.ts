import type { SegmentTimes } from "./contract.ts";

/** More segments than this (a week of 6 s) is no film: a hostile index. */
export const SEGMENTS_LIMIT = 100_000;

/** Key times and wished times are rounded by containers: so much earlier still counts. */
const GRACE_SECONDS = 0.0005;

/** A player waits for the whole of its first segment: the first ones are short, so that a slow swarm can begin. */
const FIRST_SECONDS = [2, 4];

/** How long segment `index` is wished to be. */
export function wishedSeconds(index: number, targetSeconds: number): number {
  return Math.min(targetSeconds, FIRST_SECONDS[index] ?? targetSeconds);
}

/** Chooses where to cut: of the sorted key times, the first and then each first one a wished length after the last cut. */
export function planCuts(keySeconds: readonly number[], targetSeconds: number): number[] {
  const cuts: number[] = [];
  for (const at of keySeconds) {
    const last = cuts.at(-1);
    const wished = wishedSeconds(cuts.length - 1, targetSeconds);
    if (last === undefined || at - last >= wished - GRACE_SECONDS) cuts.push(at);
  }
  return cuts.slice(0, SEGMENTS_LIMIT);
}

/** Lets a rest shorter than a third of the target join the segment before it. */
export function mergeTail(cuts: number[], endSeconds: number, targetSeconds: number): number[] {
  while (cuts.length > 1 && endSeconds - cuts.at(-1)! < targetSeconds / 3) cuts.pop();
  return cuts;
}

/**
 * Cuts at even times, for audio alone and for files without an index of key frames. Where key frames seem to come every
 * `gridSeconds`, at multiples of that. The last is half a target at least.
 */
export function evenCuts(
  startSeconds: number,
  endSeconds: number,
  targetSeconds: number,
  gridSeconds = 0,
): number[] {
  const cuts = [startSeconds];
  while (cuts.length < SEGMENTS_LIMIT) {
    const wished = wishedSeconds(cuts.length - 1, targetSeconds);
    const onGrid =
      gridSeconds > 0 ? Math.max(1, Math.ceil((wished - GRACE_SECONDS) / gridSeconds)) * gridSeconds : wished;
    const next = cuts.at(-1)! + onGrid;
    if (!(next <= endSeconds - targetSeconds / 2)) break;
    cuts.push(next);
  }
  return cuts;
}

/** The times of the segments between cuts, counted from the first cut. */
export function segmentTimes(cuts: readonly number[], endSeconds: number): SegmentTimes[] {
  const origin = cuts[0] ?? 0;
  return cuts.map((at, index) => ({
    startSeconds: at - origin,
    // The last is never empty, whatever the container says of its length.
    durationSeconds: Math.max((cuts[index + 1] ?? endSeconds) - at, 0.001),
  }));
}
