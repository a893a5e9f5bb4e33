import type { Clock } from "../runtime/contract.ts";
import { pause } from "./item-pause.ts";

/** Half of what a player that waits for its next segment would notice at worst. */
const TURN_MS = 10;

/** Lets everything else have its turn where this work has had the processor for a while; awaited often, in long work. */
export type Breathe = () => Promise<void>;

/** A {@link Breathe} for one piece of work. */
export function createBreathe(clock: Pick<Clock, "now">): Breathe {
  let since = clock.now();
  return async () => {
    if (clock.now() - since < TURN_MS) return;
    await pause();
    since = clock.now();
  };
}
