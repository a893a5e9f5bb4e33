import type { Log } from "../base/log.ts";
import { after, type UnixSeconds } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { ScheduledLimits } from "./contract.ts";
import type { PeerLimits } from "./peer-limits.ts";

/** The regular limits, and scheduled ones for a part of the day. */
export interface LimitPlan {
  readonly uploadLimit: number;
  readonly downloadLimit: number;
  readonly scheduled: ScheduledLimits | undefined;
}

/** Interval at which the local time is checked: the wall clock may be set, and daylight saving time may start. */
const CHECK_MS = 15_000;

/**
 * Switches `limits` by the time of day until the returned function is called. `minuteOf` converts a time to the minute of the
 * local day (0 to 1439).
 */
export function followSchedule(
  limits: PeerLimits,
  plan: LimitPlan,
  { clock, log, minuteOf = localMinute }: { clock: Clock; log: Log; minuteOf?: (at: UnixSeconds) => number },
): () => void {
  const { scheduled } = plan;
  if (scheduled === undefined) return () => {};
  let wasScheduled = false;
  let cancel = () => {};
  const check = () => {
    const now = clock.now();
    const isScheduled = isWithin(minuteOf(clock.unixSeconds()), scheduled);
    if (isScheduled !== wasScheduled) {
      const { uploadLimit, downloadLimit } = isScheduled ? scheduled : plan;
      log.info("rate limits changed", { upload: uploadLimit, download: downloadLimit });
      limits.upload.change(uploadLimit, now);
      limits.download.change(downloadLimit, now);
    }
    wasScheduled = isScheduled;
    cancel = clock.at(after(now, CHECK_MS), check);
  };
  check();
  return () => cancel();
}

/** Returns true if `minute` is in `[fromMinute, toMinute)`, which spans midnight if `toMinute` is smaller. */
function isWithin(
  minute: number,
  { fromMinute, toMinute }: Pick<ScheduledLimits, "fromMinute" | "toMinute">,
): boolean {
  if (fromMinute <= toMinute) return fromMinute <= minute && minute < toMinute;
  return minute >= fromMinute || minute < toMinute;
}

function localMinute(at: UnixSeconds): number {
  const date = new Date(1000 * at);
  return 60 * date.getHours() + date.getMinutes();
}
