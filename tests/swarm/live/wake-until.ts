import type { Instant } from "../../../src/base/time.ts";
import type { LiveSwarm } from "../../../src/swarm/live/live-swarm.ts";

/** Wakes a swarm whenever it wants to be, up to `until`; `woken` hears of each time. */
export function wakeUntil(
  swarm: Pick<LiveSwarm, "nextWake" | "wake">,
  until: Instant,
  woken: (now: Instant) => void,
): void {
  for (let next = swarm.nextWake(); next !== undefined && next <= until; next = swarm.nextWake()) {
    swarm.wake(next);
    woken(next);
  }
}
