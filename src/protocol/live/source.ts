import type { Children } from "./children.ts";
import {
  CALM_MS,
  CHILD_PROOF_MS,
  MAX_SOURCE_CHILDREN,
  PROOF_MS,
  SOURCE_CHILDREN,
  SOURCE_REVIEW_MS,
  UNPRODUCTIVE_MS,
} from "./limits.ts";
import { NO_DEPTH } from "./messages.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** A stripe starves if this share of the neighbours has no parent for it, or was this far behind when it last reported. */
const STARVING_SHARE = 0.2;
const STARVING_MS = 1_000;
/** In a swarm with this number of neighbours, the median one may be behind by this share of the lag; the others are compared with it. */
const MIN_COMPARED = 40;
const USUAL_LAG_SHARE = 0.25;
/** One neighbour starves if it is as far behind, or has had no parent for this time; paths are reported once a second. */
const ORPHAN_MS = 2_000;
/** Some starve if more than this share seems to lack the stripe at the moment. */
const LACKING_SHARE = 0.1;
/** Children beyond the usual ones while any neighbour starves. */
const RESERVED_CHILDREN = 1;
/** Minimum interval between two increases: one more child takes time to repair a tree. */
const GROW_MS = 500;
/** A peer that connected more recently is not a witness. */
const WITNESS_AGE_MS = 3_000;
/** A path that changed more recently proves nothing: many peers try a black hole, each for a moment. */
const STABLE_PATH_MS = 2_000;
/** With fewer witnesses that receive a stripe, no child is judged. */
const MIN_WITNESSES = 8;

/** For a source: decides how many children each stripe has, and whose claims of upload it believes. */
export class Source {
  readonly #state: LiveState;
  readonly #children: Children;
  /** By stripe: when it last starved or its limit was lowered, and when its limit was last raised. */
  readonly #calmSince: number[];
  readonly #grewAt: number[];
  /** By stripe: since when a neighbour has lacked it; undefined while none does. */
  readonly #starvesSince: (number | undefined)[];
  #reviewAt = 0;

  constructor(state: LiveState, children: Children) {
    this.#state = state;
    this.#children = children;
    this.#calmSince = new Array<number>(state.setup.layout.stripes).fill(0);
    this.#grewAt = [...this.#calmSince];
    this.#starvesSince = this.#calmSince.map(() => undefined);
  }

  /** Raises the limit of a stripe while neighbours lack it, and lowers it slowly afterwards. */
  round(): void {
    const { now, peers, setup } = this.#state;
    if (!this.#state.isSource || now < this.#reviewAt) return;
    this.#reviewAt = now + SOURCE_REVIEW_MS;
    const settled = [...peers.values()].filter(({ openedAt }) => now - openedAt > STARVING_MS);
    const reporting = settled.filter(
      ({ window, openedAt }) => window !== undefined && now - openedAt > WITNESS_AGE_MS,
    );
    for (let stripe = 0; stripe < setup.layout.stripes; stripe++) this.#review(stripe, settled, reporting);
    this.#children.trim();
  }

  #review(stripe: number, settled: readonly LivePeer[], reporting: readonly LivePeer[]): void {
    const { now, window } = this.#state;
    const limit = this.#children.sourceLimitOf(stripe);
    const tolerated = this.#state.piecesIn(STARVING_MS) + this.#usualLag(stripe, reporting);
    const isBehind = (peer: LivePeer, head: number) => peer.headOf(stripe) < head - tolerated;
    const isOrphan = (peer: LivePeer) => peer.depthOf(stripe) === NO_DEPTH;
    const fed = reporting.filter((peer) => !isOrphan(peer) && !isBehind(peer, peer.headAtWindow));
    // One starving peer is enough for the next place: most of the others may be hostile and claim to be fed.
    const isOneStarving = settled.some(
      (peer) =>
        isBehind(peer, peer.headAtWindow) || (isOrphan(peer) && now - peer.pathsAt[stripe]! > ORPHAN_MS),
    );
    // In a large swarm, some peers are always between two parents, and reports are up to half a second old.
    const lacking = settled.filter((peer) => isOrphan(peer) || isBehind(peer, window.head));
    const isAnyStarving = isOneStarving || lacking.length > LACKING_SHARE * settled.length;
    this.#starvesSince[stripe] = isAnyStarving ? (this.#starvesSince[stripe] ?? now) : undefined;
    this.#prove(stripe, fed);
    const most = isAnyStarving ? SOURCE_CHILDREN + RESERVED_CHILDREN : 0;
    if (limit < most || reporting.length - fed.length > STARVING_SHARE * reporting.length) {
      this.#calmSince[stripe] = now;
      if (now - this.#grewAt[stripe]! < GROW_MS) return;
      this.#grewAt[stripe] = now;
      this.#children.setSourceLimit(stripe, Math.min(MAX_SOURCE_CHILDREN, limit + 1));
    } else if (limit > SOURCE_CHILDREN && now - this.#calmSince[stripe]! > CALM_MS) {
      this.#calmSince[stripe] = now;
      this.#children.setSourceLimit(stripe, limit - 1);
    }
  }

  /** How many pieces the median neighbour is behind, within limits: in a large swarm, each hop adds some. */
  #usualLag(stripe: number, reporting: readonly LivePeer[]): number {
    if (this.#state.peers.size < MIN_COMPARED) return 0;
    const lags = reporting.map((peer) => peer.headAtWindow - peer.headOf(stripe)).sort((a, b) => a - b);
    const most = this.#state.piecesIn(USUAL_LAG_SHARE * this.#state.setup.lagMs);
    return Math.min(Math.max(0, lags[lags.length >> 1] ?? 0), most);
  }

  /** Upload is a claim. A peer through which others have received the stripe for a while has proved it. A
   * child through which no peer receives the stripe counts as a leaf. */
  #prove(stripe: number, fed: readonly LivePeer[]): void {
    const { now, peers } = this.#state;
    const witnesses = fed.filter(({ pathsAt }) => now - pathsAt[stripe]! > STABLE_PATH_MS);
    const feeding = new Set(witnesses.flatMap(({ paths }) => paths[stripe]!.ancestors));
    for (const peer of peers.values()) {
      if (peer.about.homeStripe !== stripe) continue;
      if (feeding.has(peer.about.digest)) peer.provedAt = now;
      peer.isUnproved = witnesses.length >= MIN_WITNESSES && now - peer.provedAt > PROOF_MS;
    }
    // A neighbour that has lacked the stripe for this time is a witness, too.
    const isLacking = now - (this.#starvesSince[stripe] ?? now) > CHILD_PROOF_MS;
    if (witnesses.length < MIN_WITNESSES && !isLacking) return;
    for (const { peer, since } of this.#children.of(stripe)) {
      if (!feeding.has(peer.about.digest) && now - Math.max(since, peer.provedAt) > CHILD_PROOF_MS)
        peer.unproductiveUntil = now + UNPRODUCTIVE_MS;
    }
  }
}
