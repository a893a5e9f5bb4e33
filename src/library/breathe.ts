import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";

/** Half of what a player that waits for its next segment would notice at worst. */
const TURN_MS = 10;

/** Lets everything else have its turn where this work has had the processor for a while; awaited often, in long work. */
export type Breathe = () => Promise<void>;

/** A {@link Breathe} for one piece of work. */
export function createBreathe(clock: Pick<Clock, "now" | "at">): Breathe {
  let since = clock.now();
  return async () => {
    if (clock.now() - since < TURN_MS) return;
    await new Promise<void>((resolve) => void clock.at(after(clock.now(), 0), resolve));
    since = clock.now();
  };
}
