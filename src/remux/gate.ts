import type { AbortSignalLike } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";

/** More may not wait: something is wrong with the caller. */
const WAITING_LIMIT = 256;

/** Lets so many jobs run at once; the others wait for their turn, first come, first served. */
export class Gate {
  readonly #limit: number;
  readonly #waiting: Array<() => void> = [];
  #running = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Runs `job` when there is room. Rejects with `SluiceError("cancelled")` as soon as `signal` fires, waiting or
   * running; a job that takes no notice keeps its place until it ends.
   */
  async run<T>(job: () => Promise<T>, signal: AbortSignalLike): Promise<T> {
    await this.#enter(signal);
    // It may have fired just as the place became free.
    if (signal.aborted) {
      this.#leave();
      throw cancelled();
    }
    const work = job().finally(() => this.#leave());
    let stop: () => void = () => {};
    const stopped = new Promise<never>((_, reject) => {
      stop = () => reject(cancelled());
      signal.addEventListener("abort", stop, { once: true });
    });
    try {
      return await Promise.race([work, stopped]);
    } catch (error) {
      throw signal.aborted ? cancelled() : error;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  #leave(): void {
    this.#running--;
    this.#waiting.shift()?.();
  }

  async #enter(signal: AbortSignalLike): Promise<void> {
    if (signal.aborted) throw cancelled();
    if (this.#running < this.#limit) {
      this.#running++;
      return;
    }
    if (this.#waiting.length >= WAITING_LIMIT) {
      throw new SluiceError("too_many", `more than ${WAITING_LIMIT} requests wait for this file`);
    }
    await new Promise<void>((resolve, reject) => {
      const wake = () => {
        signal.removeEventListener("abort", leave);
        this.#running++;
        resolve();
      };
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(wake), 1);
        reject(cancelled());
      };
      this.#waiting.push(wake);
      signal.addEventListener("abort", leave, { once: true });
    });
  }
}

function cancelled(): SluiceError {
  return new SluiceError("cancelled", "the request was cancelled");
}
