import type { Conduct } from "./conduct.ts";
import { STAT_INTERVAL_MS } from "./limits.ts";
import type { SignedStat } from "./messages.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** What the source tells besides its pieces: each newer STAT goes to all neighbours, as it came. */
export class Stats {
  readonly #state: LiveState;
  readonly #conduct: Conduct;
  #newest: SignedStat | undefined;
  /** The next one may go out at, and who has sent us the one that waits. */
  #passAt = 0;
  #from: LivePeer | undefined;
  #isWaiting = false;

  constructor(state: LiveState, conduct: Conduct) {
    this.#state = state;
    this.#conduct = conduct;
  }

  /** Our own, as the source. */
  made(stat: SignedStat): void {
    if (this.#isNews(stat)) this.#keep(stat, undefined);
  }

  /** One that a peer sends. An invalid one is a lie, an old one is ignored. */
  take(stat: SignedStat, peer: LivePeer): void {
    if (!this.#isNews(stat)) return;
    if (!peer.takeVerification(this.#state.now))
      this.#conduct.strike(peer, "too much of what the source says");
    else if (!this.#state.setup.isSignedStat(stat)) {
      this.#conduct.ban(peer, "words that the source did not sign");
    } else this.#keep(stat, peer);
  }

  /** To a neighbour that has just come. */
  tell(peer: LivePeer): void {
    if (this.#newest) this.#state.send(peer, { kind: "stat", stat: this.#newest });
  }

  /** Passes on what has waited for its second. */
  round(): void {
    const { now, peers } = this.#state;
    if (!this.#isWaiting || now < this.#passAt) return;
    this.#passAt = now + STAT_INTERVAL_MS;
    this.#isWaiting = false;
    for (const peer of peers.values()) if (peer !== this.#from && peer.isGreeted) this.tell(peer);
  }

  #isNews({ value }: SignedStat): boolean {
    const known = this.#newest?.value;
    if (!known) return true;
    return value.epoch > known.epoch || (value.epoch === known.epoch && value.number > known.number);
  }

  #keep(stat: SignedStat, from: LivePeer | undefined): void {
    this.#newest = stat;
    this.#from = from;
    this.#isWaiting = true;
    this.#state.overAtMs = stat.value.isEnd ? stat.value.timestampMs : undefined;
    this.#state.emit({ kind: "stat", stat: stat.value });
    this.round();
  }
}
