import type { Children } from "./children.ts";
import {
  BARREN_MS,
  CALM_MS,
  MAX_SOURCE_CHILDREN,
  PROOF_MS,
  PROVING_MS,
  SOURCE_CHILDREN,
  SOURCE_REVIEW_MS,
} from "./limits.ts";
import { NO_DEPTH } from "./messages.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** A stripe starves where so many of the neighbours are without a parent, or so far behind. */
const STARVING_SHARE = 0.2;
const STARVING_MS = 1_000;
/** One more child heals a torn tree, but not at once. */
const GROW_MS = 500;
/** Who has just come is no witness. */
const WITNESS_MS = 3_000;
/** A path that has just changed proves nothing: many try one who never gives anything, each for a moment. */
const STEADY_MS = 2_000;
/** So many who have the stripe from elsewhere must be there to say that a child feeds nobody. */
const WITNESSES = 8;

/** The source's only judgement: how many children each stripe has, and which of them are worth their place. */
export class Source {
  readonly #state: LiveState;
  readonly #children: Children;
  /** By stripe: when it last starved, or had a place taken from it; when it was last given one. */
  readonly #calmSince: number[];
  readonly #grewAt: number[];
  #reviewAt = 0;

  constructor(state: LiveState, children: Children) {
    this.#state = state;
    this.#children = children;
    this.#calmSince = new Array<number>(state.setup.layout.stripes).fill(0);
    this.#grewAt = [...this.#calmSince];
  }

  /** Gives a stripe to more while our neighbours lack it, and slowly to fewer when they do not. */
  round(): void {
    const { now, peers, setup } = this.#state;
    if (!this.#state.isSource || now < this.#reviewAt) return;
    this.#reviewAt = now + SOURCE_REVIEW_MS;
    const told = [...peers.values()].filter(
      ({ window, openedAt }) => window !== undefined && now - openedAt > WITNESS_MS,
    );
    for (let stripe = 0; stripe < setup.layout.stripes; stripe++) this.#review(stripe, told);
    this.#children.trim();
  }

  #review(stripe: number, told: readonly LivePeer[]): void {
    const { now, window } = this.#state;
    const places = this.#children.placesOf(stripe);
    const newest = window.head - this.#state.piecesIn(STARVING_MS);
    const isFed = (peer: LivePeer) => peer.depthOf(stripe) !== NO_DEPTH && peer.headOf(stripe) >= newest;
    const fed = told.filter(isFed);
    this.#prove(stripe, fed);
    if (told.length - fed.length > STARVING_SHARE * told.length) {
      this.#calmSince[stripe] = now;
      if (now - this.#grewAt[stripe]! < GROW_MS) return;
      this.#grewAt[stripe] = now;
      this.#children.setPlaces(stripe, Math.min(MAX_SOURCE_CHILDREN, places + 1));
    } else if (places > SOURCE_CHILDREN && now - this.#calmSince[stripe]! > CALM_MS) {
      this.#calmSince[stripe] = now;
      this.#children.setPlaces(stripe, places - 1);
    }
  }

  /**
   * What a peer could hand on is a claim. Those through whom others get the stripe, and not for a moment only, have proved it; a
   * child through whom nobody does counts as one who cannot.
   */
  #prove(stripe: number, fed: readonly LivePeer[]): void {
    const { now, peers } = this.#state;
    const witnesses = fed.filter(({ pathsAt }) => now - pathsAt[stripe]! > STEADY_MS);
    const feeding = new Set(witnesses.flatMap(({ paths }) => paths[stripe]!.ancestors));
    for (const peer of peers.values()) {
      if (peer.about.homeStripe !== stripe) continue;
      if (feeding.has(peer.about.digest)) peer.provedAt = now;
      peer.isUnproved = witnesses.length >= WITNESSES && now - peer.provedAt > PROOF_MS;
    }
    if (witnesses.length < WITNESSES) return;
    for (const { peer, since } of this.#children.of(stripe)) {
      if (!feeding.has(peer.about.digest) && now - Math.max(since, peer.provedAt) > PROVING_MS)
        peer.barrenUntil = now + BARREN_MS;
    }
  }
}
