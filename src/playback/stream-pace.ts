import type { Instant, UnixSeconds } from "../base/time.ts";

/**
 * CHOICE(shift-pace): a player behind the edge of a live stream is sent 10 s at once, then data at playback speed. Otherwise a
 * player that reads as fast as it can would be at the edge again at once, with the whole window in its memory.
 */
const BURST_MS = 10_000;
/** Clocks drift: a source whose clock is slightly fast must not be slowed down. */
const RATE = 1.002;
/** If the position is further ahead than this, the stream has a gap before it. */
const GAP_MS = 15_000;

/** Limits how far a stream is read ahead of playback speed. */
export class StreamPace {
  #from: { readonly at: Instant; readonly position: UnixSeconds } | undefined;

  /** Starts anew after a seek. */
  reset(): void {
    this.#from = undefined;
  }

  /** Returns how many milliseconds to wait before the data at `position` is read. */
  waitMs(position: UnixSeconds | undefined, now: Instant): number {
    if (position === undefined) return 0;
    this.#from ??= { at: now, position };
    const aheadMs = 1000 * (position - this.#from.position) - RATE * (now - this.#from.at);
    // A player that was slow is not sent more than the usual burst later.
    if (aheadMs < 0 || aheadMs > BURST_MS + GAP_MS) this.#from = { at: now, position };
    else if (aheadMs > BURST_MS) return aheadMs - BURST_MS;
    return 0;
  }
}
