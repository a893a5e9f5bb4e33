import { FIRST_TIMEOUT_MS, MAX_TIMEOUT_MS, MIN_TIMEOUT_MS } from "./limits.ts";

/** How long answers take, and how long one waits for them (BEP 29, RFC 6298). Milliseconds. */
export class RoundTrip {
  #smoothMs: number | undefined;
  #variationMs = 0;
  #backOff = 1;
  leastMs = Number.POSITIVE_INFINITY;

  /** Takes a round trip of a packet that was sent once. */
  add(ms: number): void {
    this.leastMs = Math.min(this.leastMs, ms);
    if (this.#smoothMs === undefined) {
      this.#smoothMs = ms;
      this.#variationMs = ms / 2;
      return;
    }
    this.#variationMs += (Math.abs(this.#smoothMs - ms) - this.#variationMs) / 4;
    this.#smoothMs += (ms - this.#smoothMs) / 8;
  }

  /** The usual round trip; a guess while none was measured. */
  get ms(): number {
    return this.#smoothMs ?? FIRST_TIMEOUT_MS / 2;
  }

  get isKnown(): boolean {
    return this.#smoothMs !== undefined;
  }

  /** After so long without any acknowledgement what is on its way counts as lost. */
  get timeoutMs(): number {
    const base =
      this.#smoothMs === undefined
        ? FIRST_TIMEOUT_MS
        : Math.max(this.#smoothMs + 4 * this.#variationMs, MIN_TIMEOUT_MS);
    return Math.min(base * this.#backOff, MAX_TIMEOUT_MS);
  }

  /** Nothing came in time: the next wait is twice as long. */
  timedOut(): void {
    this.#backOff = Math.min(this.#backOff * 2, 64);
  }

  /** The peer is there. */
  answered(): void {
    this.#backOff = 1;
  }
}
