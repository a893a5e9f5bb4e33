import type { Budget } from "../../base/rate-limit.ts";
import type { Instant } from "../../base/time.ts";

/** Somebody who sends to us, and whom we need not read. */
export interface PausableSender {
  /** No limit holds for it. */
  readonly isExempt: boolean;
  readonly isPaused: boolean;
  pause(): void;
  resume(): void;
}

/** What came may be ahead of the limit by so much: files wait meanwhile, and a short burst costs no time. */
const MAX_DEBT_MS = 250;

/** Keeps a stream to its part of a limit on download: what has come has come, but what comes is read later. */
export class DownloadLimit {
  readonly #budget: Budget;

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** So much has come. Where it was too much, nothing is read from who sent it; the network tells it to go slower. */
  received(sender: PausableSender, bytes: number, now: Instant): void {
    if (sender.isExempt) return;
    this.#budget.spend(bytes, now);
    if (!sender.isPaused && this.#budget.waitMs(now) > MAX_DEBT_MS) sender.pause();
  }

  /** Reads again from who was paused, where the limit allows it; to be called about ten times a second. */
  round(sender: PausableSender, now: Instant): void {
    // Asked as who waits, so that files leave room for it.
    if (sender.isPaused && this.#budget.take(0, now)) sender.resume();
  }
}
