import { MAX_ANCESTORS } from "../../wire/live-limits.ts";
import type { StripePath } from "../../wire/live-paths.ts";
import type { RefusedMessage, SubscribedMessage } from "../../wire/live-subscription.ts";
import { type Feed, orphan } from "./feed.ts";
import {
  AVOID_MS,
  FIRST_CHUNK_MS,
  LATE_MS,
  MAX_DEPTH,
  ORPHAN_LATE_MS,
  PROOF_CHUNKS,
  SILENCE_MS,
  STARVING_LATE_MS,
  SUB_ANSWER_MS,
} from "./limits.ts";
import { NO_DEPTH } from "./messages.ts";
import { chooseParent, type ParentWish } from "./parent-choice.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** A stripe without a parent for so long makes us less choosy; for so long, it lets us ask again who once was good. */
const RELAX_MS = 400;
const DIRE_MS = 2_000;
/** So many times longer is borne of a parent that starves itself. */
const STARVING_PATIENCE = 4;

/** The parents of all stripes: finds them, watches them, leaves them. */
export class Parents {
  readonly #state: LiveState;
  readonly #feeds: Feed[];
  readonly #found: (addresses: RefusedMessage["candidates"]) => void;
  readonly #isAsked: (seq: number, stripe: number) => boolean;
  readonly #paths: StripePath[];

  /** `found` hears of addresses that were named, `isAsked` knows which chunks were pulled and are on their way. */
  constructor(
    state: LiveState,
    found: (addresses: RefusedMessage["candidates"]) => void,
    isAsked: (seq: number, stripe: number) => boolean,
  ) {
    this.#state = state;
    this.#found = found;
    this.#isAsked = isAsked;
    this.#feeds = Array.from({ length: state.setup.layout.stripes }, () => orphan(state.now));
    const depth = state.isSource ? 0 : NO_DEPTH;
    this.#paths = this.#feeds.map((_, stripe) => ({ stripe, depth, ancestors: [] }));
  }

  /** The way a stripe takes to us: our place in its tree. */
  pathOf(stripe: number): StripePath {
    return this.#paths[stripe]!;
  }

  /** The paths of a set of stripes. */
  pathsOf(stripes: number): StripePath[] {
    return this.#paths.filter(({ stripe }) => ((stripes >>> stripe) & 1) === 1);
  }

  /** Who gives us the stripe. */
  parentOf(stripe: number): LivePeer | undefined {
    return this.#feeds[stripe]!.parent;
  }

  /** Stripes that nobody gives. */
  get orphans(): number {
    return this.#feeds.filter(({ parent }) => parent === undefined).length;
  }

  /** How much later than usual a chunk may be before it is asked of others. */
  borneMs(seq: number, stripe: number): number {
    const { parent, next } = this.#feeds[stripe]!;
    if (!parent) return next ? LATE_MS : ORPHAN_LATE_MS;

    // A parent that lacks it itself pulls it, and hands it down: not all of a torn tree ask at once.
    return parent.has(seq, stripe) ? LATE_MS : STARVING_LATE_MS;
  }

  /** How long the stripe is as it is now: with this parent, or without any, whoever is being asked. */
  settledMs(stripe: number): number {
    const { parent, since, orphanedAt } = this.#feeds[stripe]!;
    return this.#state.now - (parent ? since : orphanedAt);
  }

  /** The way in is known from now on. */
  began(): void {
    for (const feed of this.#feeds) feed.orphanedAt = this.#state.now;
  }

  /** The stream goes on after a pause: nobody was silent by its own fault. */
  resumed(): void {
    for (const feed of this.#feeds) {
      feed.lastChunkAt = this.#state.now;
      if (feed.chunks === 0) feed.since = this.#state.now;
    }
  }

  /** A chunk came that `from` sent by itself. */
  gave(from: LivePeer, stripe: number, seq: number): void {
    const feed = this.#feeds[stripe]!;
    if (feed.next === from) this.#switch(feed, stripe);
    if (feed.parent !== from) return;
    feed.lastChunkAt = this.#state.now;
    feed.lastSeq = Math.max(feed.lastSeq, seq);
    feed.chunks++;
  }

  /** The first piece of which the stripe comes by itself: the parent has said so. */
  promisedFrom(stripe: number): number {
    return this.#feeds[stripe]!.promisedSeq;
  }

  accepted(from: LivePeer, { stripes, startSeq }: SubscribedMessage): void {
    for (const [stripe, feed] of this.#feeds.entries()) {
      if (((stripes >>> stripe) & 1) === 0 || feed.next !== from) continue;
      feed.isNextAccepted = true;
      // While another gives the stripe, what is older comes from that one.
      if (!feed.parent) feed.promisedSeq = Math.min(startSeq, this.#state.window.head + 1);
      feed.nextSince = this.#state.now;
      feed.refusals = 0;
      // Nobody gives it now: this one counts as the parent at once, so that our own place is known.
      if (!feed.parent) this.#switch(feed, stripe);
    }
  }

  refused(from: LivePeer, message: RefusedMessage): void {
    const { now } = this.#state;
    this.#found(message.candidates);
    for (const [stripe, feed] of this.#feeds.entries()) {
      if (((message.stripes >>> stripe) & 1) === 0) continue;
      if (feed.next === from) {
        feed.refusals++;
        this.#dropNext(feed, stripe);
        from.retryAt = now + message.retryMs;
      } else if (feed.parent === from && !feed.next) {
        // Another takes our place there: we are served until somebody else gives the stripe.
        from.retryAt = now + message.retryMs;
        const heir = message.candidates[0]?.address.host;
        const known = [...this.#state.peers.values()].find((peer) => peer.address.host === heir);
        feed.isDisplaced = true;
        this.seek(stripe, {}, known);
      }
    }
  }

  /** The parent does not want us any more. */
  dropped(from: LivePeer, stripes: number): void {
    for (const [stripe, feed] of this.#feeds.entries()) {
      if (((stripes >>> stripe) & 1) === 0) continue;
      from.retryAt = this.#state.now + 2_000;
      if (feed.next === from) this.#dropNext(feed, stripe);
      if (feed.parent === from) this.#orphan(feed, stripe);
    }
  }

  left(peer: LivePeer): void {
    for (const [stripe, feed] of this.#feeds.entries()) {
      if (feed.next === peer) feed.next = undefined;
      if (feed.parent === peer) this.#orphan(feed, stripe);
    }
  }

  /** Paths of it have changed: are we in one of them now? Then each waits for the other. */
  pathsChanged(peer: LivePeer, paths: readonly StripePath[]): void {
    if (peer.parentOf === 0) return;
    for (const { stripe, depth, ancestors } of paths) {
      const feed = this.#feeds[stripe];
      if (feed?.parent !== peer) continue;
      this.#review(stripe);
      const isLoop = ancestors.includes(this.#state.setup.about.digest);
      if (isLoop || (depth !== NO_DEPTH && depth >= MAX_DEPTH)) this.#leave(feed, stripe, "bad");
    }
  }

  /** Looks after all stripes: who is late is left, who is missing is sought. */
  round(): void {
    const asks = new Map<LivePeer, { mask: number; isUrgent: boolean }>();
    const { layout } = this.#state.setup;
    // Not always the same stripe first: everybody would ask the same parents.
    const first = Math.floor(this.#state.setup.random() * layout.stripes);
    for (let i = 0; i < layout.stripes; i++) {
      const stripe = (first + i) % layout.stripes;
      const feed = this.#feeds[stripe]!;
      this.#watch(feed, stripe);
      if (!feed.next && (!feed.parent || feed.isDisplaced)) this.#choose(feed, stripe, asks);
    }
    for (const [peer, { mask, isUrgent }] of asks) this.#subscribe(peer, mask, isUrgent);
  }

  /** Whether a stripe has a parent and no other is being asked for it. */
  isSettled(stripe: number): boolean {
    const { parent, next, isDisplaced } = this.#feeds[stripe]!;
    return parent !== undefined && next === undefined && !isDisplaced;
  }

  /** Asks for another parent of a stripe while the one it has goes on. False where there is nobody to ask. */
  seek(stripe: number, wish: ParentWish, wanted?: LivePeer): boolean {
    const feed = this.#feeds[stripe]!;
    if (feed.next) return false;
    const peer =
      wanted && this.#mayAsk(wanted, stripe)
        ? wanted
        : chooseParent(this.#state, stripe, { except: feed.parent, ...wish });
    if (!peer) return false;
    this.#setNext(feed, stripe, peer);
    this.#subscribe(peer, 1 << stripe, false);
    return true;
  }

  /** A new epoch: all starts again. */
  reset(): void {
    for (const feed of this.#feeds) {
      feed.lastSeq = -1;
      feed.promisedSeq = 0;
    }
  }

  #watch(feed: Feed, stripe: number): void {
    const { now, setup, window } = this.#state;
    const { pieceMs } = setup.layout;
    const { next, parent } = feed;
    if (next) {
      const patience = next.rttMs + pieceMs + (feed.isNextAccepted ? FIRST_CHUNK_MS : SUB_ANSWER_MS);
      const isLate = setup.rules.watchesFirstChunk && now - feed.nextSince > patience;
      if (isLate || now - feed.nextSince > 10 * patience) this.#fail(next, stripe, feed, true);
    }
    if (!parent || now <= feed.since) return;
    if (feed.chunks === 0) {
      const isLate =
        setup.rules.watchesFirstChunk && now - feed.since > parent.rttMs + pieceMs + FIRST_CHUNK_MS;
      if (isLate || now - feed.since > 5_000) this.#fail(parent, stripe, feed, false);
      return;
    }
    // A stream that stands still is nobody's fault: others must have had more.
    if (window.head <= feed.lastSeq + 1) return;
    // One that lacks the stripe itself and says so is repairing it; one that says nothing is gone.
    const patience = SILENCE_MS + pieceMs;
    const isThere = now - parent.heardAt <= patience && parent.usefulChunks >= PROOF_CHUNKS;
    const isStarving = isThere && parent.headOf(stripe) <= feed.lastSeq;
    if (now - feed.lastChunkAt <= patience * (isStarving ? STARVING_PATIENCE : 1)) return;
    if (isStarving) this.#leave(feed, stripe, "moved");
    else this.#fail(parent, stripe, feed, false);
  }

  #choose(feed: Feed, stripe: number, asks: Map<LivePeer, { mask: number; isUrgent: boolean }>): void {
    const orphanMs = feed.parent ? 0 : this.#state.now - feed.orphanedAt;
    const isRelaxed = orphanMs > RELAX_MS;
    const peer = chooseParent(this.#state, stripe, {
      except: feed.parent,
      // A parent that goes on giving is no sign that others starve.
      lastSeq: feed.parent ? -1 : feed.lastSeq,
      isRelaxed,
      isDire: orphanMs > DIRE_MS,
    });
    if (!peer) return;
    this.#setNext(feed, stripe, peer);
    const isUrgent = feed.refusals >= 2 || isRelaxed || peer.about.homeStripe !== stripe;
    const ask = asks.get(peer) ?? { mask: 0, isUrgent: false };
    asks.set(peer, { mask: ask.mask | (1 << stripe), isUrgent: ask.isUrgent || isUrgent });
  }

  #mayAsk(peer: LivePeer, stripe: number): boolean {
    const { digest } = this.#state.setup.about;
    return (
      peer.isGreeted && peer.avoidUntil <= this.#state.now && !peer.paths[stripe]?.ancestors.includes(digest)
    );
  }

  #setNext(feed: Feed, stripe: number, peer: LivePeer): void {
    feed.next = peer;
    feed.nextSince = this.#state.now;
    feed.isNextAccepted = false;
    peer.parentOf |= 1 << stripe;
  }

  #subscribe(peer: LivePeer, mask: number, isDesperate: boolean): void {
    const { window, epoch, setup } = this.#state;
    const startSeq = Math.max(this.#state.nextSeq, this.#state.startSeq, window.head - 31, 0);
    const have: number[] = [];
    for (const [stripe] of this.#feeds.entries()) {
      if (((mask >>> stripe) & 1) === 0) continue;
      let bits = 0;
      for (let i = 0; i < 32; i++) {
        const seq = startSeq + i;
        if (window.has(seq, stripe) || this.#isAsked(seq, stripe)) bits |= 1 << i;
      }
      have.push(bits >>> 0);
    }
    const backfillPieces = Math.min(32, this.#state.piecesIn(setup.rules.backfillMs));
    this.#state.send(peer, {
      kind: "subscribe",
      stripes: mask,
      epoch,
      startSeq,
      backfillPieces,
      have,
      isDesperate,
    });
  }

  /** The next one takes over. */
  #switch(feed: Feed, stripe: number): void {
    const { now } = this.#state;
    const old = feed.parent;
    const next = feed.next!;
    if (old && old !== next) this.#unsubscribe(old, stripe, "moved");
    feed.parent = next;
    feed.next = undefined;
    feed.isDisplaced = false;
    feed.since = now;
    feed.lastChunkAt = now;
    feed.chunks = 0;
    feed.refusals = 0;
    this.#review(stripe);
  }

  #fail(peer: LivePeer, stripe: number, feed: Feed, isNext: boolean): void {
    // Who has never given anything is avoided longer each time.
    const more = peer.usefulChunks === 0 ? 2 ** Math.min(peer.failures++, 4) : 1;
    if (this.#state.setup.rules.watchesFirstChunk) peer.avoidUntil = this.#state.now + AVOID_MS * more;
    peer.usefulChunks = Math.min(peer.usefulChunks, PROOF_CHUNKS - 1);
    this.#unsubscribe(peer, stripe, "bad");
    if (isNext) feed.next = undefined;
    else this.#orphan(feed, stripe);
    feed.refusals++;
  }

  #leave(feed: Feed, stripe: number, reason: "moved" | "bad"): void {
    this.#unsubscribe(feed.parent!, stripe, reason);
    feed.parent!.retryAt = this.#state.now + 1_000;
    this.#orphan(feed, stripe);
  }

  #unsubscribe(peer: LivePeer, stripe: number, reason: "moved" | "bad"): void {
    peer.parentOf &= ~(1 << stripe);
    this.#state.send(peer, {
      kind: "unsubscribe",
      stripes: 1 << stripe,
      reason,
    });
  }

  #dropNext(feed: Feed, stripe: number): void {
    if (feed.next && feed.next !== feed.parent) feed.next.parentOf &= ~(1 << stripe);
    feed.next = undefined;
  }

  #orphan(feed: Feed, stripe: number): void {
    if (feed.parent) feed.parent.parentOf &= ~(1 << stripe);
    feed.parent = undefined;
    feed.isDisplaced = false;
    feed.orphanedAt = this.#state.now;
    this.#review(stripe);
  }

  /** Our path follows from the parent's. */
  #review(stripe: number): void {
    const parent = this.#feeds[stripe]!.parent;
    const above = parent?.depthOf(stripe) ?? NO_DEPTH;
    const isFed = parent !== undefined && above !== NO_DEPTH;
    const depth = isFed ? above + 1 : NO_DEPTH;
    const ancestors = isFed
      ? [parent.about.digest, ...(parent.paths[stripe]?.ancestors ?? [])].slice(0, MAX_ANCESTORS)
      : [];
    const old = this.#paths[stripe]!;
    if (old.depth === depth && areSame(old.ancestors, ancestors)) return;
    this.#paths[stripe] = { stripe, depth, ancestors };
    for (const peer of this.#state.peers.values()) peer.untoldPaths |= 1 << stripe;
  }
}

function areSame(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}
