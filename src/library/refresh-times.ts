import type { Random } from "../base/random.ts";
import type { UnixSeconds } from "../base/time.ts";

/** CHOICE(update-interval): 0 is never by itself; else at least a minute and at most 31 days, so that no list is asked
 * without end and none is forgotten. */
const MIN_INTERVAL_SECONDS = 60;
const MAX_INTERVAL_SECONDS = 31 * 86_400;
/** How soon a list that failed is asked again; then after twice as long, and so on to a day. */
const FIRST_RETRY_SECONDS = 300;
const MAX_RETRY_SECONDS = 86_400;
/** Lists that were added together shall not be asked together for ever. */
const JITTER_SHARE = 0.05;
const MAX_JITTER_SECONDS = 600;

/** The interval that is kept for one that was asked for, in seconds. */
export function boundedInterval(seconds: number): number {
  if (!(seconds > 0)) return 0;
  return Math.min(Math.max(Math.round(seconds), MIN_INTERVAL_SECONDS), MAX_INTERVAL_SECONDS);
}

/** When a list is due after a refresh that went well at `now`; 0 where it never is by itself. */
export function nextAfterSuccess(now: UnixSeconds, intervalSeconds: number): UnixSeconds {
  return (intervalSeconds === 0 ? 0 : now + intervalSeconds) as UnixSeconds;
}

/** When a list is due after `failures` refreshes in a row that failed, and not before what its server asked for. */
export function nextAfterFailure(
  now: UnixSeconds,
  intervalSeconds: number,
  failures: number,
  retryAfterSeconds: number,
): UnixSeconds {
  if (intervalSeconds === 0) return 0 as UnixSeconds;
  const first = Math.min(FIRST_RETRY_SECONDS, intervalSeconds);
  const doubled = first * 2 ** Math.min(failures - 1, 20);
  return (now + Math.min(Math.max(doubled, retryAfterSeconds), MAX_RETRY_SECONDS)) as UnixSeconds;
}

/** A little later than due, another little each time: up to a twentieth of the interval, and ten minutes, in seconds. */
export function jitterSeconds(intervalSeconds: number, random: Random): number {
  return Math.min(intervalSeconds * JITTER_SHARE, MAX_JITTER_SECONDS) * random();
}

/**
 * The due time of a list, looked at now: one that lies further away than it can have been set means that the wall clock
 * was set back, and becomes one interval from now.
 */
export function saneNext(next: UnixSeconds, now: UnixSeconds, intervalSeconds: number): UnixSeconds {
  const farthest = now + Math.max(intervalSeconds, MAX_RETRY_SECONDS);
  return (next > farthest ? now + intervalSeconds : next) as UnixSeconds;
}
