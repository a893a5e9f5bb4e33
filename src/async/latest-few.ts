import { SluiceError } from "../base/errors.ts";
import { type LinkedAbort, linkedAbort } from "./abort.ts";

/**
 * Limits the pending requests of one player: above the limit, the oldest request is aborted. A player that seeks often leaves
 * requests behind, and the runtime does not always report that it hung up; the swarm must not fetch data for them. Players
 * send two or three requests at once.
 */
export class LatestFew {
  readonly #limit: number;
  readonly #waiting = new Set<LinkedAbort>();

  constructor(limit = 6) {
    this.#limit = limit;
  }

  /** Runs `work` as the newest request. Its signal fires when newer requests displace it, or when `outer` fires. */
  async run<T>(outer: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    outer.throwIfAborted();
    const abort = linkedAbort(outer);
    this.#waiting.add(abort);
    this.#abortOldest();
    try {
      return await work(abort.signal);
    } finally {
      this.#waiting.delete(abort);
      abort.release();
    }
  }

  #abortOldest(): void {
    for (const oldest of this.#waiting) {
      if (this.#waiting.size <= this.#limit) return;
      this.#waiting.delete(oldest);
      oldest.abort(new SluiceError("cancelled", "newer requests of the same player replaced this one"));
    }
  }
}
