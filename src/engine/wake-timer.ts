import type { Instant } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";

/** The one timer of a machine that real time drives: it rings at the earliest moment that was asked for. */
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

  /** Rings at `next`, or before. Who is woken too early finds that out by itself: only an earlier wish costs a new timer. */
  want(next: Instant | undefined): void {
    if (this.#isStopped || next === undefined || (this.#at !== undefined && this.#at <= next)) return;
    this.#cancel();
    this.#at = next;
    this.#cancel = this.#clock.at(next, () => {
      this.#at = undefined;
      this.#ring();
    });
  }

  /** Never rings again. */
  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }
}
