import { FIRST_ANSWER_MS, LOST_FACTOR, MAX_ANSWER_MS, MIN_ANSWER_MS, MIN_LOST_MS } from "./limits.ts";

/** How long answers take: learned from those that came, as TCP learns it (RFC 6298 2). */
export class RoundTrip {
  #smoothedMs: number | undefined;
  #deviationMs = 0;

  /** An answer came after `ms`. */
  measured(ms: number): void {
    if (this.#smoothedMs === undefined) {
      this.#smoothedMs = ms;
      this.#deviationMs = ms / 2;
      return;
    }
    this.#deviationMs += (Math.abs(this.#smoothedMs - ms) - this.#deviationMs) / 8;
    this.#smoothedMs += (ms - this.#smoothedMs) / 16;
  }

  /** When somebody else is asked meanwhile: from a node whose own round trip is known, or from any. */
  expectedMs(ownMs?: number): number {
    const expected = ownMs !== undefined ? 1.5 * ownMs + 50 : this.#general();
    return Math.min(MAX_ANSWER_MS, Math.max(MIN_ANSWER_MS, expected));
  }

  #general(): number {
    return this.#smoothedMs === undefined ? FIRST_ANSWER_MS : this.#smoothedMs + 3 * this.#deviationMs;
  }
}

/** When an answer that was expected after `expectedMs` does not come any more. */
export function lostMs(expectedMs: number): number {
  return Math.max(MIN_LOST_MS, LOST_FACTOR * expectedMs);
}
