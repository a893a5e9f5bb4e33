import { instant, type UnixSeconds } from "../../../base/time.ts";
import type { Clock } from "../../../runtime/contract.ts";

/** The clock of the browser. */
export const CLOCK: Clock = {
  now: () => instant(performance.now()),
  unixSeconds: () => (Date.now() / 1000) as UnixSeconds,
  at(at, run) {
    const timer = setTimeout(run, Math.max(0, at - performance.now()));
    return () => clearTimeout(timer);
  },
};
