import type { Instant } from "./time.ts";

/**
 * A pure state machine without clock, socket, promise or timer: the caller passes inputs and the time, and collects outputs.
 * After each `handle` or `wake` the caller drains `poll`; it calls `wake` no later than `nextWake`.
 */
export interface Machine<Input, Output> {
  /** Processes one input. `now` never goes backwards. */
  handle(input: Input, now: Instant): void;
  /** Processes timers that are due at `now`. */
  wake(now: Instant): void;
  /** Returns the next output, or undefined if there is none at present. */
  poll(): Output | undefined;
  /** Returns the time of the next timer, or undefined if none is set. */
  nextWake(): Instant | undefined;
}
