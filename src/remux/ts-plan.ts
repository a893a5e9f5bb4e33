import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import type { TsStream } from "../media/ts-programme.ts";
import { targetSecondsOf } from "./segment-plan.ts";
import type { TsPlace, TsTimes } from "./ts-head.ts";
import type { TsReader } from "./ts-reader.ts";

/** The planned segments of a file: each begins at a known byte position, or at the first key frame at or after a time. */
export interface TsPlan {
  /** Start of each segment in ticks from the first unit; the first is 0. */
  readonly starts: readonly number[];
  readonly endTicks: number;
  /** Byte positions of all starts if the whole file was read, else of the first ones. */
  readonly places: readonly number[] | undefined;
}

/** Files up to this size are read in full, so that every duration is exact. */
export const FULL_INDEX_BYTES = 4 * 1024 * 1024;

const INDEX_STEP_BYTES = 1024 * 1024;
/** After this many target durations without a key frame, a segment is cut at any frame, to bound memory and delay. */
const MAX_TARGETS_WITHOUT_KEY = 4;
/** A longer step between two units is a discontinuity of the clock. */
const MAX_STEP_TICKS = 10 * TICKS_PER_SECOND;

/** Plans a file exactly, by reading all of it. A discontinuity of the clock counts as one frame. */
export async function planByScan(
  reader: TsReader,
  leading: TsStream,
  times: TsTimes,
  targetTicks: number,
  signal?: AbortSignal,
): Promise<TsPlan> {
  const starts = [0];
  const places = [0];
  let ticks = 0;
  let lastDts = times.firstDts;
  const delta = (dts: number) => {
    const step = deltaTicks(dts, lastDts);
    return step > 0 && step <= MAX_STEP_TICKS ? step : times.frameTicks;
  };
  let isFirst = true;
  for await (const unit of reader.units(leading, 0, INDEX_STEP_BYTES, signal)) {
    if (!isFirst) ticks += delta(unit.dts);
    isFirst = false;
    lastDts = unit.dts;
    const length = ticks - starts.at(-1)!;
    const isDue = length >= targetTicksOf(starts.length - 1, targetTicks) - times.frameTicks / 2;
    if (!(isDue && unit.isKey) && length < MAX_TARGETS_WITHOUT_KEY * targetTicks) continue;
    starts.push(ticks);
    places.push(unit.at);
  }
  return { starts, endTicks: ticks + times.frameTicks, places };
}

/**
 * Plans a file from its head and tail alone. The first segment ends at a key frame in the head. If the key frames in head and tail
 * are evenly spaced, the durations are exact; else a segment begins at the first key frame at or after its planned time.
 */
export function planByTimes(times: TsTimes, leading: TsStream, targetTicks: number): TsPlan {
  const { keys, frameTicks, durationTicks } = times;
  const isKeyed = leading.kind !== "audio" && times.isClockContinuous;
  const interval = isKeyed ? evenInterval(times) : undefined;
  const longest = leading.kind === "audio" ? 0 : longestGap(keys);
  const stepOf = (index: number) => {
    const target = targetTicksOf(index, targetTicks);
    if (interval === undefined) return Math.max(target, longest);
    return interval * Math.max(1, Math.ceil((target - frameTicks / 2) / interval));
  };
  const firstEnd = isKeyed
    ? keys.find(({ ticks }) => ticks >= targetTicksOf(0, targetTicks) - frameTicks / 2)
    : undefined;
  const starts = [0];
  for (let at = firstEnd?.ticks ?? stepOf(0); at < durationTicks - stepOf(starts.length) / 4; ) {
    starts.push(at);
    at += stepOf(starts.length - 1);
  }
  const places = firstEnd && starts.length > 1 ? [0, firstEnd.at] : undefined;
  return { starts, endTicks: durationTicks, places };
}

/** The target duration of segment `index`, in ticks. */
export function targetTicksOf(index: number, targetTicks: number): number {
  return targetSecondsOf(index, targetTicks / TICKS_PER_SECOND) * TICKS_PER_SECOND;
}

function evenInterval(times: TsTimes): number | undefined {
  const { keys, tailKey, frameTicks } = times;
  if (keys.length < 2) return undefined;
  const interval = keys[1]!.ticks - keys[0]!.ticks;
  if (interval <= 0) return undefined;
  const isOnGrid = (key: TsPlace) => {
    const remainder = (key.ticks - keys[0]!.ticks) % interval;
    return Math.min(remainder, interval - remainder) <= frameTicks / 2;
  };
  return keys.every(isOnGrid) && (!tailKey || isOnGrid(tailKey)) ? interval : undefined;
}

function longestGap(keys: readonly TsPlace[]): number {
  let longest = 0;
  for (const [i, key] of keys.entries())
    if (i > 0) longest = Math.max(longest, key.ticks - keys[i - 1]!.ticks);
  return longest;
}
