import { CARRIED_SHARE, CARRY_MS } from "./limits.ts";
import type { LivePeer } from "./peer.ts";

/** Children that wait at the same time prove that our own line is full, and not that of one of them. */
const WAITING_TOGETHER_MS = 1_000;
/** After repeated backlogs, the next stripe is tried after at most this time. */
const MAX_STEP_MS = 48_000;

/** Learns what our own line uploads. An offer is only a guess: a page offers twice the bitrate on any line. */
export class OwnLine {
  #bytesPerSecond = Number.POSITIVE_INFINITY;
  #at = 0;
  #stepMs = CARRY_MS;

  /** The upload that the line is believed to carry: what it carried at its last backlog, and one stripe more after each step. */
  carriedBytesPerSecond(stripeRate: number, now: number): number {
    if (this.#bytesPerSecond === Number.POSITIVE_INFINITY) return this.#bytesPerSecond;
    return this.#bytesPerSecond + Math.floor((now - this.#at) / this.#stepMs) * stripeRate;
  }

  /** Live data of a child waits too long. Returns whether our own line is the reason: then its upload is known. */
  overloaded(peers: Iterable<LivePeer>, stripeRate: number, now: number): boolean {
    let waiting = 0;
    let carried = 0;
    let given = 0;
    for (const peer of peers) {
      if (peer.childOf === 0) continue;
      const demand = peer.childCount * stripeRate;
      const isWaiting = now - peer.backlogAt <= WAITING_TOGETHER_MS;
      if (isWaiting) waiting++;
      given += demand;
      carried += isWaiting ? Math.min(demand, peer.backlogRate) : demand;
    }
    if (waiting < 2 || carried >= CARRIED_SHARE * given) return false;
    const isAgain = now - this.#at < 2 * this.#stepMs;
    this.#stepMs = isAgain ? Math.min(MAX_STEP_MS, 2 * this.#stepMs) : CARRY_MS;
    this.#bytesPerSecond = carried;
    this.#at = now;
    return true;
  }
}
