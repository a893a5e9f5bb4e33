import type { Instant } from "../../base/time.ts";

/** If the time of day has advanced further than this against the monotonic clock, the machine slept or its clock was
 * set. */
const MAX_AHEAD_MS = 10_000;
/** How much faster or slower than real time this clock may run to approach the time of day. */
const MAX_SLEW = 0.05;

/** The time of day in UNIX ms for a stream: it never goes back. If the machine's clock is set back, this time
 * continues slightly slower until both agree. */
export class SteadyTime {
  #last: { readonly at: Instant; readonly ms: number } | undefined;

  /** Returns the time for `at` on the monotonic clock, if the machine's time of day is `unixMs`. */
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
