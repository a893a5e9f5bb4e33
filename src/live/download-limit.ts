import type { Budget } from "../base/rate-limit.ts";
import type { Instant } from "../base/time.ts";

/** A connection whose reading can be paused. */
export interface PausableSender {
  /** True if no limit applies to this connection. */
  readonly isExempt: boolean;
  readonly isPaused: boolean;
  pause(): void;
  resume(): void;
}

/** A stream may be ahead of its limit by this time, so that a short burst is not delayed. File transfers wait meanwhile. */
const MAX_DEBT_MS = 250;

/** Applies a download limit to a stream. Received bytes cannot be refused, but reading can be delayed. */
export class DownloadLimit {
  readonly #budget: Budget;

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** Counts received bytes. Above the limit, pauses reading, so that flow control slows the sender down. */
  received(sender: PausableSender, bytes: number, now: Instant): void {
    if (sender.isExempt) return;
    this.#budget.spend(bytes, now);
    if (!sender.isPaused && this.#budget.waitMs(now) > MAX_DEBT_MS) sender.pause();
  }

  /** Resumes a paused sender if the limit allows it. Call this about ten times a second. */
  round(sender: PausableSender, now: Instant): void {
    // Taking 0 bytes marks this stream as waiting, so that file transfers leave capacity for it.
    if (sender.isPaused && this.#budget.take(0, now)) sender.resume();
  }
}
