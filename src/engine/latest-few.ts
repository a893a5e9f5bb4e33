import { SluiceError } from "../base/errors.ts";

/**
 * Requests of one player that wait at once, at most so many: where there are more, the oldest is given up. A player
 * that jumps about leaves requests behind whose going away is not always heard of; what they asked for must not keep
 * the swarm busy. Players ask for two or three things at once.
 */
export class LatestFew {
  readonly #limit: number;
  readonly #waiting = new Set<AbortController>();

  constructor(limit = 6) {
    this.#limit = limit;
  }

  /** Runs `work` as the newest request. Its signal fires when it is given up, or when `outer` does. */
  async run<T>(outer: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    outer.throwIfAborted();
    const abort = new AbortController();
    const forward = () => abort.abort(outer.reason);
    outer.addEventListener("abort", forward, { once: true });
    this.#waiting.add(abort);
    this.#giveUpOldest();
    try {
      return await work(abort.signal);
    } finally {
      this.#waiting.delete(abort);
      outer.removeEventListener("abort", forward);
    }
  }

  #giveUpOldest(): void {
    for (const oldest of this.#waiting) {
      if (this.#waiting.size <= this.#limit) return;
      this.#waiting.delete(oldest);
      oldest.abort(new SluiceError("cancelled", "newer requests of the same player took its place"));
    }
  }
}
