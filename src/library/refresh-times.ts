import type { Random } from "../base/random.ts";
import type { UnixSeconds } from "../base/time.ts";

/** CHOICE(update-interval): 0 disables automatic refreshes; other intervals are limited to 1 minute to 31 days. */
const MIN_INTERVAL_SECONDS = 60;
const MAX_INTERVAL_SECONDS = 31 * 86_400;
/** Delay of the first retry after a failure; doubles with each further failure, up to a day. */
const FIRST_RETRY_SECONDS = 300;
const MAX_RETRY_SECONDS = 86_400;
/** Spreads the refreshes of lists that were added together. */
const JITTER_SHARE = 0.05;
const MAX_JITTER_SECONDS = 600;

/** Limits a requested interval, in seconds. */
export function boundedInterval(seconds: number): number {
  if (!(seconds > 0)) return 0;
  return Math.min(Math.max(Math.round(seconds), MIN_INTERVAL_SECONDS), MAX_INTERVAL_SECONDS);
}

/** Returns the due time after a successful refresh at `now`; 0 if automatic refreshes are off. */
export function nextAfterSuccess(now: UnixSeconds, intervalSeconds: number): UnixSeconds {
  return (intervalSeconds === 0 ? 0 : now + intervalSeconds) as UnixSeconds;
}

/** Returns the due time after `failures` consecutive failures, not before the server's Retry-After. */
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

/** Returns a random delay in seconds: up to 5 % of the interval, at most ten minutes. */
export function jitterSeconds(intervalSeconds: number, random: Random): number {
  return Math.min(intervalSeconds * JITTER_SHARE, MAX_JITTER_SECONDS) * random();
}

/**
 * Corrects a due time: one that is later than any valid value means that the wall clock was set back, and becomes one
 * interval from now.
 */
export function saneNext(next: UnixSeconds, now: UnixSeconds, intervalSeconds: number): UnixSeconds {
  const farthest = now + Math.max(intervalSeconds, MAX_RETRY_SECONDS);
  return (next > farthest ? now + intervalSeconds : next) as UnixSeconds;
}
