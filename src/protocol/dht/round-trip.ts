import { FIRST_ANSWER_MS, LOST_FACTOR, MAX_ANSWER_MS, MIN_ANSWER_MS, MIN_LOST_MS } from "./limits.ts";

/** Estimates how long answers take, from measured round trips (RFC 6298 2). */
export class RoundTrip {
  #smoothedMs: number | undefined;
  #deviationMs = 0;

  /** Adds the round trip of an answer in milliseconds. */
  measured(ms: number): void {
    if (this.#smoothedMs === undefined) {
      this.#smoothedMs = ms;
      this.#deviationMs = ms / 2;
      return;
    }
    this.#deviationMs += (Math.abs(this.#smoothedMs - ms) - this.#deviationMs) / 8;
    this.#smoothedMs += (ms - this.#smoothedMs) / 16;
  }

  /** Milliseconds after which another node is queried, too; `ownMs` is the node's own round trip, if known. */
  expectedMs(ownMs?: number): number {
    const expected = ownMs !== undefined ? 1.5 * ownMs + 50 : this.#general();
    return Math.min(MAX_ANSWER_MS, Math.max(MIN_ANSWER_MS, expected));
  }

  #general(): number {
    return this.#smoothedMs === undefined ? FIRST_ANSWER_MS : this.#smoothedMs + 3 * this.#deviationMs;
  }
}

/** Returns the milliseconds after which an answer expected after `expectedMs` counts as lost. */
export function lostMs(expectedMs: number): number {
  return Math.max(MIN_LOST_MS, LOST_FACTOR * expectedMs);
}
