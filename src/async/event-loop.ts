import type { Clock } from "../runtime/contract.ts";

/** Half of the longest delay that a player which waits for its next segment would notice. */
const MAX_BLOCK_MS = 10;

/** Yields to the event loop if this task has blocked it for 10 ms; long work awaits it often. */
export type YieldIfDue = () => Promise<void>;

/** Creates a {@link YieldIfDue} for one task. */
export function createYielder(clock: Pick<Clock, "now">): YieldIfDue {
  let since = clock.now();
  return async () => {
    if (clock.now() - since < MAX_BLOCK_MS) return;
    await yieldToLoop();
    since = clock.now();
  };
}

/** Lets pending I/O and timers run, which awaiting a settled promise does not. */
export function yieldToLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
