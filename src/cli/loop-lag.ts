import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";

/** Time between two samples. */
const INTERVAL_MS = 250;
/** Sampling stops when the lag was not read for this time, so that an engine without monitoring does not wake for it. */
const UNREAD_MS = 300_000;

/** Measures how late timers run: how long other work holds the event loop. Samples only while it is read. */
export class LoopLag {
  readonly #clock: Clock;
  #maxMs = 0;
  #readAt = 0;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the largest lag since the last call in seconds; 0 at the first call, which starts the measurement. */
  readSeconds(): number {
    const lag = this.#maxMs / 1000;
    this.#maxMs = 0;
    this.#readAt = this.#clock.now();
    if (this.#cancel === undefined) this.#sample();
    return lag;
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #sample(): void {
    const due = after(this.#clock.now(), INTERVAL_MS);
    this.#cancel = this.#clock.at(due, () => {
      this.#cancel = undefined;
      const now = this.#clock.now();
      this.#maxMs = Math.max(this.#maxMs, now - due);
      if (now - this.#readAt < UNREAD_MS) this.#sample();
    });
  }
}
