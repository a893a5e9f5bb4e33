import type { Instant } from "../../base/time.ts";

/** A time of day that is further ahead of ours was not reached by running: the machine slept, or its clock was set. */
const MAX_AHEAD_MS = 10_000;
/** How much faster or slower than time our clock may run to meet the time of day. */
const MAX_SLEW = 0.05;

/**
 * The time of day in UNIX ms as a stream may count on it: it never goes back, and runs on where the machine's clock is set back, only a little
 * slower until the two agree.
 */
export class SteadyTime {
  #last: { readonly at: Instant; readonly ms: number } | undefined;

  /** The time at `at` of the monotonic clock, when the machine says that it is `unixMs`. */
  now(at: Instant, unixMs: number): number {
    const last = this.#last;
    let ms = unixMs;
    if (last && unixMs - last.ms - (at - last.at) <= MAX_AHEAD_MS) {
      const passed = Math.max(0, at - last.at);
      const off = unixMs - (last.ms + passed);
      ms = last.ms + passed * (1 + Math.max(-MAX_SLEW, Math.min(MAX_SLEW, off / 1000)));
    }
    this.#last = { at, ms };
    return Math.floor(ms);
  }
}
