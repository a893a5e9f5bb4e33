import type { Instant } from "./time.ts";

/**
 * A pure state machine: inputs and the time go in, outputs come out; it owns no clock, socket, promise or timer.
 * The caller drains `poll` after every `handle`, and calls `handle` or `wake` again at `nextWake` at the latest.
 */
export interface Machine<Input, Output> {
  /** Takes one input. `now` never goes backwards. */
  handle(input: Input, now: Instant): void;
  /** Does what is due by time alone. */
  wake(now: Instant): void;
  /** The next output, or undefined when there is none for now. */
  poll(): Output | undefined;
  /** When `wake` wants to be called next, or undefined for never. */
  nextWake(): Instant | undefined;
}
