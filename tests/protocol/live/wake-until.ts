import type { Instant } from "../../../src/base/time.ts";
import type { LiveSwarm } from "../../../src/protocol/live/live-swarm.ts";

/** Wakes a swarm whenever it is due, up to `until`; calls `woken` after each time. */
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
