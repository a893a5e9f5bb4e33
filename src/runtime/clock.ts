import type { Instant, UnixSeconds } from "../base/time.ts";
import type { Clock } from "./contract.ts";

/** The longest delay that timers take (a signed 32-bit number of milliseconds); longer ones would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** The clock of the machine: `performance.now`, and timers that do not keep the process alive. */
export const clock: Clock = {
  now: () => performance.now() as Instant,
  unixSeconds: () => Math.floor(Date.now() / 1000) as UnixSeconds,
  at(at, run) {
    // Rounded up: a timer that fires before its instant would find nothing to do and come again at once.
    const delayMs = Math.min(Math.max(Math.ceil(at - performance.now()), 0), MAX_DELAY_MS);
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
