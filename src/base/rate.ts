import type { Instant } from "./time.ts";

/** Shorter samples do not give a usable rate; their bytes count as if spread over this time. */
const MIN_SAMPLE_MS = 500;
/** After this many windows without bytes the meter resets. */
const RESET_WINDOWS = 2;

/**
 * Measures a rate in bytes per second as an exponential moving average over about the last `windowMs`. The average starts at 0,
 * so it is divided by the weight of the time measured so far; otherwise a new rate would need two windows to show.
 */
export class RateMeter {
  readonly #windowMs: number;
  #bytesPerMs = 0;
  #pending = 0;
  #first: Instant | undefined;
  #last: Instant | undefined;
  #lastBytes: Instant | undefined;
  /** Bytes counted since the meter was created. */
  total = 0;

  constructor(windowMs = 4000) {
    this.#windowMs = windowMs;
  }

  /** Counts `bytes` transferred at `now`. */
  add(bytes: number, now: Instant): void {
    this.#reset(now);
    this.total += bytes;
    this.#pending += bytes;
    this.#lastBytes = now;
    this.#first ??= now;
    this.#last ??= now;
    if (now - this.#last >= 100) this.#fold(now);
  }

  /** Returns the rate at `now`, in bytes per second. */
  bytesPerSecond(now: Instant): number {
    this.#reset(now);
    if (this.#first === undefined || this.#last === undefined) return 0;
    if (now - this.#last >= 100) this.#fold(now);
    const measuredMs = Math.max(MIN_SAMPLE_MS, this.#last - this.#first);
    return (this.#bytesPerMs * 1000) / (1 - Math.exp(-measuredMs / this.#windowMs));
  }

  #reset(now: Instant): void {
    if (this.#lastBytes === undefined || now - this.#lastBytes < RESET_WINDOWS * this.#windowMs) return;
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

/** A token bucket that fills at a constant rate, in bytes or operations per second. A rate of 0 means no limit. */
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

  /** Takes `bytes` if the bucket is not empty; it may go below zero once. Returns false if the caller must wait. */
  take(bytes: number, now: Instant): boolean {
    if (this.bytesPerSecond === 0) return true;
    this.#fill(now);
    if (this.#tokens <= 0) return false;
    this.#tokens -= bytes;
    return true;
  }

  /** Takes `bytes` in any case: what has happened already cannot wait. */
  spend(bytes: number, now: Instant): void {
    this.#fill(now);
    this.#tokens -= bytes;
  }

  /** Returns the time until something can be taken again, in milliseconds. */
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
