import type { SegmentTimes, SoundSlice } from "./contract.ts";

/** Limit for hostile indexes: a week of 6 s segments. */
const SEGMENTS_LIMIT = 100_000;

/** Tolerance for key frame times that the container rounded down. */
const GRACE_SECONDS = 0.0005;

/** Durations of the first segments. A player waits for its whole first segment, so short ones start sooner from a slow swarm. */
const FIRST_SECONDS = [2, 4];

/** The target duration of segment `index`, in seconds. */
export function targetSecondsOf(index: number, targetSeconds: number): number {
  return Math.min(targetSeconds, FIRST_SECONDS[index] ?? targetSeconds);
}

/** Chooses the cuts from sorted key frame times: the first one, then the first one at least a target duration after each cut. */
export function planCuts(keySeconds: readonly number[], targetSeconds: number): number[] {
  const cuts: number[] = [];
  for (const at of keySeconds) {
    const last = cuts.at(-1);
    const target = targetSecondsOf(cuts.length - 1, targetSeconds);
    if (last === undefined || at - last >= target - GRACE_SECONDS) cuts.push(at);
  }
  return cuts.slice(0, SEGMENTS_LIMIT);
}

/** Merges a last segment that is shorter than a third of the target into the one before it. */
export function mergeTail(cuts: number[], endSeconds: number, targetSeconds: number): number[] {
  while (cuts.length > 1 && endSeconds - cuts.at(-1)! < targetSeconds / 3) cuts.pop();
  return cuts;
}

/**
 * Plans cuts at even times, for audio files and for files without an index of key frames. If `gridSeconds` (the assumed distance of
 * key frames) is positive, segment durations are multiples of it. The last segment has at least half the target duration.
 */
export function evenCuts(
  startSeconds: number,
  endSeconds: number,
  targetSeconds: number,
  gridSeconds = 0,
): number[] {
  const cuts = [startSeconds];
  while (cuts.length < SEGMENTS_LIMIT) {
    const target = targetSecondsOf(cuts.length - 1, targetSeconds);
    const onGrid =
      gridSeconds > 0 ? Math.max(1, Math.ceil((target - GRACE_SECONDS) / gridSeconds)) * gridSeconds : target;
    const next = cuts.at(-1)! + onGrid;
    if (!(next <= endSeconds - targetSeconds / 2)) break;
    cuts.push(next);
  }
  return cuts;
}

/** The times of the segments between the cuts, relative to the first cut. */
export function segmentTimes(cuts: readonly number[], endSeconds: number): SegmentTimes[] {
  const origin = cuts[0] ?? 0;
  return cuts.map((at, index) => ({
    startSeconds: at - origin,
    // The last segment is never empty, whatever duration the container states.
    durationSeconds: Math.max((cuts[index + 1] ?? endSeconds) - at, 0.001),
  }));
}

/** Target duration of a slice of converted audio: short, because a player that seeks waits for its conversion. */
const SLICE_SECONDS = 2;
/** The same in the first segment, for a quick start. */
const FIRST_SLICE_SECONDS = 1;

/** Divides segments into slices of converted audio. */
export function soundSlices(segments: readonly SegmentTimes[]): readonly SoundSlice[] {
  let number = 0;
  return segments.flatMap(({ durationSeconds }, segment) => {
    const target = segment === 0 ? FIRST_SLICE_SECONDS : SLICE_SECONDS;
    const count = Math.max(1, Math.round(durationSeconds / target));
    return Array.from({ length: count }, (_, index) => ({
      ...{ number: number++, segment, index, count },
      durationSeconds: durationSeconds / count,
    }));
  });
}

/** Returns where a slice begins and ends in a segment; infinite at the ends of the segment, so that nothing is lost. */
export function sliceBounds(start: number, end: number, { index, count }: SoundSlice): [number, number] {
  const at = (border: number) => start + ((end - start) * border) / count;
  return [
    index === 0 ? Number.NEGATIVE_INFINITY : at(index),
    index + 1 === count ? Number.POSITIVE_INFINITY : at(index + 1),
  ];
}
