/** The upload that subscriptions leave for repairs and backlog, as a token bucket of one second. */
export class SpareUpload {
  readonly #bytesPerSecond: () => number;
  #tokens = 0;
  #at = 0;

  /** `bytesPerSecond` returns the upload that is left at the moment. */
  constructor(bytesPerSecond: () => number) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** How long a chunk of `bytes` would wait at `now`, in ms, if `reserveSeconds` of the upload are kept. */
  waitMs(bytes: number, now: number, reserveSeconds = 0): number {
    this.#fill(now);
    const missing = bytes + reserveSeconds * this.#bytesPerSecond() - this.#tokens;
    return missing <= 0 ? 0 : (1_000 * missing) / Math.max(1, this.#bytesPerSecond());
  }

  /** Bytes that can be sent within `ms` from `now` on. */
  within(ms: number, now: number): number {
    this.#fill(now);
    return Math.max(0, this.#tokens + (ms * this.#bytesPerSecond()) / 1_000);
  }

  /** Takes tokens for `bytes`. The balance may become negative, because promised backlog is always sent. */
  spend(bytes: number, now: number): void {
    this.#fill(now);
    this.#tokens -= bytes;
  }

  /** Whether more than one second of upload is owed. */
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
