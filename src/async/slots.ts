import type { AbortSignalLike } from "../base/byte-source.ts";
import { onAbort, orAborted } from "./abort.ts";

export interface SlotsOptions {
  /** Slots that can be taken at the same time. */
  readonly limit: number;
  /** Callers that can wait for a slot at the same time. */
  readonly queueLimit: number;
  /** Builds the error for a caller that finds the queue full. */
  readonly queueFull: () => Error;
}

/** A semaphore with a queue in order of arrival. */
export class Slots {
  readonly #options: SlotsOptions;
  readonly #queue = new Set<() => void>();
  #taken = 0;

  constructor(options: SlotsOptions) {
    this.#options = options;
  }

  /** True if no slot is taken; the queue is then empty, too. */
  get isIdle(): boolean {
    return this.#taken === 0;
  }

  /**
   * Takes a slot, in order of arrival. Resolves to the function that releases it (a second call does nothing). Rejects with
   * the signal's reason if the signal fires first, or with `queueFull()`.
   */
  take(signal?: AbortSignalLike): Promise<() => void> {
    const { limit, queueLimit, queueFull } = this.#options;
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#taken < limit) {
      this.#taken++;
      return Promise.resolve(this.#releaser());
    }
    if (this.#queue.size >= queueLimit) return Promise.reject(queueFull());
    return new Promise((resolve, reject) => {
      const next = () => {
        stopListening();
        resolve(this.#releaser());
      };
      this.#queue.add(next);
      const stopListening = onAbort(signal, () => {
        this.#queue.delete(next);
        reject(signal!.reason);
      });
    });
  }

  /**
   * Runs `job` when a slot is free. Rejects with the signal's reason as soon as it fires, queued or running; a job that ignores
   * the signal keeps its slot until it ends. Otherwise rejects as `take` and `job` do.
   */
  async run<T>(job: () => Promise<T>, signal: AbortSignalLike): Promise<T> {
    const release = await this.take(signal);
    // The signal can fire after the slot became free.
    if (signal.aborted) {
      release();
      throw signal.reason;
    }
    return orAborted(job().finally(release), signal);
  }

  #releaser(): () => void {
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      const [next] = this.#queue;
      if (!next) {
        this.#taken--;
        return;
      }
      this.#queue.delete(next);
      next();
    };
  }
}
