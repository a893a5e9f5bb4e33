import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import type { TsStream } from "../media/ts-programme.ts";
import { wishedSeconds } from "./segment-plan.ts";
import type { TsPlace, TsTimes } from "./ts-head.ts";
import type { TsReader } from "./ts-reader.ts";

/** Where the segments of a file begin: at places known already, or at the first keyframe from a time on. */
export interface TsPlan {
  /** One for each segment, the first at 0; ticks from the first unit. */
  readonly starts: readonly number[];
  readonly endTicks: number;
  /** Bytes: of all starts where the whole file has been looked at, else of the first ones. */
  readonly places: readonly number[] | undefined;
}

/** Files up to this size are looked at as a whole, so that every duration is exact. */
export const FULL_INDEX_BYTES = 4 * 1024 * 1024;

const INDEX_STEP_BYTES = 1024 * 1024;
/** Without a keyframe for so many target durations a segment is cut at any frame: players and memory cannot wait. */
const MAX_TARGETS_WITHOUT_KEY = 4;
/** A longer step from one unit to the next is a jump of the clock, not time that passed. */
const MAX_STEP_TICKS = 10 * TICKS_PER_SECOND;

/** The exact plan of a file, by looking at all of it. Jumps of the clock are bridged. */
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
    const isDue = length >= wishedTicks(starts.length - 1, targetTicks) - times.frameTicks / 2;
    if (!(isDue && unit.isKey) && length < MAX_TARGETS_WITHOUT_KEY * targetTicks) continue;
    starts.push(ticks);
    places.push(unit.at);
  }
  return { starts, endTicks: ticks + times.frameTicks, places };
}

/**
 * The plan of a file from its head and tail alone. The first segment ends at a keyframe that the head shows. Where keyframes come
 * at even distances there (and the one at the tail agrees), the durations are exact; else a segment begins at the first keyframe
 * from its planned time on.
 */
export function planByTimes(times: TsTimes, leading: TsStream, targetTicks: number): TsPlan {
  const { keys, frameTicks, durationTicks } = times;
  const isKeyed = leading.kind !== "audio" && times.isClockSound;
  const interval = isKeyed ? evenInterval(times) : undefined;
  const longest = leading.kind === "audio" ? 0 : longestGap(keys);
  const stepOf = (index: number) => {
    const wished = wishedTicks(index, targetTicks);
    if (interval === undefined) return Math.max(wished, longest);
    return interval * Math.max(1, Math.ceil((wished - frameTicks / 2) / interval));
  };
  const firstEnd = isKeyed
    ? keys.find(({ ticks }) => ticks >= wishedTicks(0, targetTicks) - frameTicks / 2)
    : undefined;
  const starts = [0];
  for (let at = firstEnd?.ticks ?? stepOf(0); at < durationTicks - stepOf(starts.length) / 4; ) {
    starts.push(at);
    at += stepOf(starts.length - 1);
  }
  const places = firstEnd && starts.length > 1 ? [0, firstEnd.at] : undefined;
  return { starts, endTicks: durationTicks, places };
}

/** How long segment `index` is wished to be. */
export function wishedTicks(index: number, targetTicks: number): number {
  return wishedSeconds(index, targetTicks / TICKS_PER_SECOND) * TICKS_PER_SECOND;
}

function evenInterval(times: TsTimes): number | undefined {
  const { keys, tailKey, frameTicks } = times;
  if (keys.length < 2) return undefined;
  const interval = keys[1]!.ticks - keys[0]!.ticks;
  if (interval <= 0) return undefined;
  const isOnGrid = (key: TsPlace) => {
    const rest = (key.ticks - keys[0]!.ticks) % interval;
    return Math.min(rest, interval - rest) <= frameTicks / 2;
  };
  return keys.every(isOnGrid) && (!tailKey || isOnGrid(tailKey)) ? interval : undefined;
}

function longestGap(keys: readonly TsPlace[]): number {
  let longest = 0;
  for (const [i, key] of keys.entries())
    if (i > 0) longest = Math.max(longest, key.ticks - keys[i - 1]!.ticks);
  return longest;
}
