/** The longest time that a task may block the event loop. */
const HOLD_MS = 8;

/** Yields to the event loop if the task has blocked it for 8 ms: `await breather.breathe()` in each step of long work. */
export class Breather {
  #since = performance.now();

  /** Returns undefined if no pause is due, for steps that are too short to await each. */
  breathe(): Promise<void> | undefined {
    return performance.now() - this.#since < HOLD_MS ? undefined : this.#pause();
  }

  async #pause(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#since = performance.now();
  }
}
