/** The upload that subscriptions leave: what repairs and backlog may use, as a bucket of one second. */
export class Spare {
  readonly #bytesPerSecond: () => number;
  #tokens = 0;
  #at = 0;

  /** `bytesPerSecond` is what is left at the moment. */
  constructor(bytesPerSecond: () => number) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** How long a chunk of `bytes` would wait, in ms. */
  waitMs(bytes: number, now: number): number {
    this.#fill(now);
    const missing = bytes - this.#tokens;
    return missing <= 0 ? 0 : (1_000 * missing) / Math.max(1, this.#bytesPerSecond());
  }

  /** Bytes that could be sent within `ms`. */
  within(ms: number, now: number): number {
    this.#fill(now);
    return Math.max(0, this.#tokens + (ms * this.#bytesPerSecond()) / 1_000);
  }

  /** Takes bytes, also on credit: backlog of a child that was let in is sent in any case. */
  spend(bytes: number, now: number): void {
    this.#fill(now);
    this.#tokens -= bytes;
  }

  /** More than a second's worth is owed. */
  isOverdrawn(now: number): boolean {
    this.#fill(now);
    return this.#tokens < -this.#bytesPerSecond();
  }

  #fill(now: number): void {
    const rate = this.#bytesPerSecond();
    this.#tokens = Math.min(rate, this.#tokens + ((now - this.#at) * rate) / 1_000);
    this.#at = now;
  }
}
