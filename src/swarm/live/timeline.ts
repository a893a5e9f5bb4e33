import type { Instant } from "../../base/time.ts";

/** The estimate follows a clock that drifts: the best of the current and of the last minute counts. */
const EPOCH_MS = 60_000;

/**
 * Brings the source's clock and ours together without trusting either: the fastest header of the last minutes is on
 * time, all others are later than it. So nobody needs a right wall clock.
 */
export class Timeline {
  #best = Number.POSITIVE_INFINITY;
  #lastBest = Number.POSITIVE_INFINITY;
  #since = 0;

  /** A verified header, new to us, has come. */
  arrived(tsMs: number, now: Instant): void {
    if (now - this.#since >= EPOCH_MS) {
      this.#lastBest = this.#best;
      this.#best = Number.POSITIVE_INFINITY;
      this.#since = now;
    }
    this.#best = Math.min(this.#best, now - tsMs);
  }

  /** Milliseconds that a piece of `tsMs` is later now than the fastest one was on its arrival. */
  latenessMs(tsMs: number, now: Instant): number {
    return now - tsMs - Math.min(this.#best, this.#lastBest);
  }

  /** Forgets all: another source or epoch. */
  reset(): void {
    this.#best = Number.POSITIVE_INFINITY;
    this.#lastBest = Number.POSITIVE_INFINITY;
  }
}
