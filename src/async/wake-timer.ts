import type { Instant } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";

/** The single timer of a state machine that the real clock drives: it rings at the earliest requested time. */
export class WakeTimer {
  readonly #clock: Pick<Clock, "at">;
  readonly #ring: () => void;
  #at: Instant | undefined;
  #cancel: () => void = () => {};
  #isStopped = false;

  constructor(clock: Pick<Clock, "at">, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Rings at `next` or earlier; a machine must tolerate an early wake. Only an earlier time needs a new timer. */
  want(next: Instant | undefined): void {
    if (this.#isStopped || next === undefined || (this.#at !== undefined && this.#at <= next)) return;
    this.#cancel();
    this.#at = next;
    this.#cancel = this.#clock.at(next, () => {
      this.#at = undefined;
      this.#ring();
    });
  }

  /** Cancels the timer for good. */
  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }
}
