import type { Instant, UnixSeconds } from "../base/time.ts";

/**
 * CHOICE(shift-pace): who watches a live stream behind its edge is sent 10 s at once, and then as fast as it plays. Without that, a
 * player that takes all it gets would stand at the edge a moment after it went back, with the whole window in its memory.
 */
const BURST_MS = 10_000;
/** Two clocks never agree: who watches live for a year must not be held up by ours. */
const RATE = 1.002;
/** What is further ahead of its time was not sent too fast: something is missing before it. */
const GAP_MS = 15_000;

/** How far ahead of its own pace a stream may be read. */
export class StreamPace {
  #from: { readonly at: Instant; readonly position: UnixSeconds } | undefined;

  /** The stream goes on elsewhere. */
  reset(): void {
    this.#from = undefined;
  }

  /** How long to wait, in ms, before what stands at `position` is read. */
  waitMs(position: UnixSeconds | undefined, now: Instant): number {
    if (position === undefined) return 0;
    this.#from ??= { at: now, position };
    const aheadMs = 1000 * (position - this.#from.position) - RATE * (now - this.#from.at);
    // What was not sent in time is not sent later all at once.
    if (aheadMs < 0 || aheadMs > BURST_MS + GAP_MS) this.#from = { at: now, position };
    else if (aheadMs > BURST_MS) return aheadMs - BURST_MS;
    return 0;
  }
}
