/** So long a task may hold the event loop before it lets others have it. */
const HOLD_MS = 8;

/** Lets others have the event loop, where a long task has held it for long enough: `await breather.breathe()`. */
export class Breather {
  #since = performance.now();

  async breathe(): Promise<void> {
    if (performance.now() - this.#since < HOLD_MS) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#since = performance.now();
  }
}
