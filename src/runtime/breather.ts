/** The longest time that a task may block the event loop. */
const HOLD_MS = 8;

/** Yields to the event loop if the task has blocked it for 8 ms: `await breather.breathe()` in each step of long work. */
export class Breather {
  #since = performance.now();

  async breathe(): Promise<void> {
    if (performance.now() - this.#since < HOLD_MS) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#since = performance.now();
  }
}
