import type { Instant } from "../base/time.ts";

/** What a router's clock said when. */
export interface RouterEpoch {
  readonly epochSeconds: number;
  readonly heardAt: Instant;
}

/** Clocks tick apart, and answers are late: so many seconds, and this share, are no sign of anything (RFC 6887 8.5). */
const SLACK_SECONDS = 2;
const SLACK_SHARE = 1 / 16;

/** Whether a router has begun anew, and forgotten what was mapped, between two of its answers (RFC 6887 8.5). */
export function hasRestarted(before: RouterEpoch, now: RouterEpoch): boolean {
  const ours = (now.heardAt - before.heardAt) / 1000;
  const theirs = now.epochSeconds - before.epochSeconds;
  if (theirs < -1) return true;
  return (
    ours + SLACK_SECONDS < theirs * (1 - SLACK_SHARE) || theirs + SLACK_SECONDS < ours * (1 - SLACK_SHARE)
  );
}
