import type { Instant } from "./time.ts";

/** What came in a shorter time than this is too little to tell a rate by: it counts as if spread over so long. */
const LEAST_MS = 500;
/** Where nothing has come for so many windows there is no rate any more, and what comes then begins a new one. */
const FORGET_WINDOWS = 2;

/**
 * A rate in bytes a second, averaged over about the last `windowMs` with exponential forgetting. The average begins
 * at nothing, so it is divided by the weight of the time that it has seen: without that a new rate would take two
 * windows to show.
 */
export class RateMeter {
  readonly #windowMs: number;
  #bytesPerMs = 0;
  #pending = 0;
  #first: Instant | undefined;
  #last: Instant | undefined;
  #lastBytes: Instant | undefined;
  /** All bytes ever counted. */
  total = 0;

  constructor(windowMs = 4000) {
    this.#windowMs = windowMs;
  }

  /** Counts `bytes` that moved at `now`. */
  add(bytes: number, now: Instant): void {
    this.#forget(now);
    this.total += bytes;
    this.#pending += bytes;
    this.#lastBytes = now;
    this.#first ??= now;
    this.#last ??= now;
    if (now - this.#last >= 100) this.#fold(now);
  }

  /** The rate at `now`, in bytes a second. */
  bytesPerSecond(now: Instant): number {
    this.#forget(now);
    if (this.#first === undefined || this.#last === undefined) return 0;
    if (now - this.#last >= 100) this.#fold(now);
    const seenMs = Math.max(LEAST_MS, this.#last - this.#first);
    return (this.#bytesPerMs * 1000) / (1 - Math.exp(-seenMs / this.#windowMs));
  }

  #forget(now: Instant): void {
    if (this.#lastBytes === undefined || now - this.#lastBytes < FORGET_WINDOWS * this.#windowMs) return;
    this.#bytesPerMs = 0;
    this.#pending = 0;
    this.#first = this.#last = this.#lastBytes = undefined;
  }

  #fold(now: Instant): void {
    const elapsed = now - this.#last!;
    const keep = Math.exp(-elapsed / this.#windowMs);
    this.#bytesPerMs = this.#bytesPerMs * keep + (this.#pending / elapsed) * (1 - keep);
    this.#pending = 0;
    this.#last = now;
  }
}

/** A budget of bytes that fills at a rate: for upload and download limits. A rate of 0 means no limit. */
export class TokenBucket {
  #tokens: number;
  #last: Instant | undefined;
  readonly bytesPerSecond: number;
  readonly burstBytes: number;

  constructor(bytesPerSecond: number, burstBytes = Math.max(bytesPerSecond / 2, 32 * 1024)) {
    this.bytesPerSecond = bytesPerSecond;
    this.burstBytes = burstBytes;
    this.#tokens = burstBytes;
  }

  /** Takes `bytes` if the budget is not spent (it may go below zero once); false where the caller must wait. */
  take(bytes: number, now: Instant): boolean {
    if (this.bytesPerSecond === 0) return true;
    this.#fill(now);
    if (this.#tokens <= 0) return false;
    this.#tokens -= bytes;
    return true;
  }

  /** How long until something can be taken again, in milliseconds. */
  waitMs(now: Instant): number {
    if (this.bytesPerSecond === 0) return 0;
    this.#fill(now);
    return this.#tokens > 0 ? 0 : Math.ceil((1 - this.#tokens) / (this.bytesPerSecond / 1000));
  }

  #fill(now: Instant): void {
    const elapsed = this.#last === undefined ? 0 : now - this.#last;
    this.#last = now;
    this.#tokens = Math.min(this.burstBytes, this.#tokens + (elapsed * this.bytesPerSecond) / 1000);
  }
}
