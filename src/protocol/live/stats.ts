import type { Conduct } from "./conduct.ts";
import { STAT_INTERVAL_MS } from "./limits.ts";
import type { SignedStat } from "./messages.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** Keeps the newest STAT of the source and forwards it to all neighbours. */
export class Stats {
  readonly #state: LiveState;
  readonly #conduct: Conduct;
  #newest: SignedStat | undefined;
  /** When the next STAT may be forwarded, and the sender of the waiting one. */
  #passAt = 0;
  #from: LivePeer | undefined;
  #isWaiting = false;

  constructor(state: LiveState, conduct: Conduct) {
    this.#state = state;
    this.#conduct = conduct;
  }

  /** Publishes a STAT of the local source. */
  publish(stat: SignedStat): void {
    if (this.#isNewer(stat)) this.#keep(stat, undefined);
  }

  /** Handles a STAT from a peer: an invalid one bans the peer, an old one is ignored. */
  take(stat: SignedStat, peer: LivePeer): void {
    if (!this.#isNewer(stat)) return;
    if (!peer.takeVerification(this.#state.now)) this.#conduct.strike(peer, "STAT rate limit exceeded");
    else if (!this.#state.setup.isSignedStat(stat)) {
      this.#conduct.ban(peer, "invalid STAT signature");
    } else this.#keep(stat, peer);
  }

  /** Sends the newest STAT to a peer. */
  sendTo(peer: LivePeer): void {
    if (this.#newest) this.#state.send(peer, { kind: "stat", stat: this.#newest });
  }

  /** Forwards the waiting STAT when the interval has passed. */
  round(): void {
    const { now, peers } = this.#state;
    if (!this.#isWaiting || now < this.#passAt) return;
    this.#passAt = now + STAT_INTERVAL_MS;
    this.#isWaiting = false;
    for (const peer of peers.values()) if (peer !== this.#from && peer.hasSentHello) this.sendTo(peer);
  }

  #isNewer({ value }: SignedStat): boolean {
    const known = this.#newest?.value;
    if (value.timestampMs >= this.#state.revokedFromMs && !value.successor) return false;
    if (!known) return true;
    return value.epoch > known.epoch || (value.epoch === known.epoch && value.number > known.number);
  }

  #keep(stat: SignedStat, from: LivePeer | undefined): void {
    this.#newest = stat;
    this.#from = from;
    this.#isWaiting = true;
    this.#state.endedAtMs = stat.value.isEnd ? stat.value.timestampMs : undefined;
    this.#state.emit({ kind: "stat", stat: stat.value });
    if (stat.value.successor) this.revoke(stat.value.successor);
    this.round();
  }

  /** The first valid successor record counts. A source goes on, because only its user decides. */
  revoke(record: Uint8Array): void {
    const { isSource, revokedFromMs, setup } = this.#state;
    if (isSource || Number.isFinite(revokedFromMs)) return;
    const successor = setup.successorOf?.(record);
    if (!successor) return;
    this.#state.revokedFromMs = successor.sinceMs;
    this.#state.emit({ kind: "moved", successor });
  }
}
