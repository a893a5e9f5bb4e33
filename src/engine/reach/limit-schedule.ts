import type { Log } from "../../base/log.ts";
import { after, type UnixSeconds } from "../../base/time.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { ScheduledLimits } from "./contract.ts";
import type { PeerLimits } from "./peer-limits.ts";

/** Two pairs of limits, and when the second one holds. */
export interface LimitPlan {
  readonly uploadLimit: number;
  readonly downloadLimit: number;
  readonly scheduled: ScheduledLimits | undefined;
}

/** The clock of the wall may be set, and summer begins: so often it is looked at. */
const LOOK_MS = 15_000;

/**
 * Lets the limits follow the time of day until the returned function is called. `minuteOf` tells the minute of the local day
 * (0 to 1439).
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
  const look = () => {
    const now = clock.now();
    const isScheduled = isWithin(minuteOf(clock.unixSeconds()), scheduled);
    if (isScheduled !== wasScheduled) {
      const { uploadLimit, downloadLimit } = isScheduled ? scheduled : plan;
      log.info("other rate limits", { upload: uploadLimit, download: downloadLimit });
      limits.upload.change(uploadLimit, now);
      limits.download.change(downloadLimit, now);
    }
    wasScheduled = isScheduled;
    cancel = clock.at(after(now, LOOK_MS), look);
  };
  look();
  return () => cancel();
}

/** Whether a minute of the day is one of those between two others, over midnight where the second is the smaller one. */
export function isWithin(
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
