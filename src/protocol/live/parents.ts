import type { StripePath } from "../../wire/live/paths.ts";
import type { RefusedMessage, SubscribedMessage } from "../../wire/live/subscription.ts";
import { bitsOf, type Feed, hasPassed, isDoubtful, orphan } from "./feed.ts";
import {
  AVOID_MS,
  BACKFILL_MS,
  DOUBTFUL_LATE_MS,
  FIRST_CHUNK_MS,
  LATE_MS,
  MAX_DEPTH,
  ORPHAN_LATE_MS,
  PROOF_CHUNKS,
  STARVING_LATE_MS,
  STRIPE_TIMEOUT_MS,
  SUB_ANSWER_MS,
} from "./limits.ts";
import { NO_DEPTH } from "./messages.ts";
import { OwnPaths } from "./own-paths.ts";
import { chooseParent, type ParentCriteria } from "./parent-choice.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** A stripe without a parent for this time may take one that already gives many stripes. */
const ALLOW_LOADED_MS = 400;
/** After this time, it may ask a peer again that failed but has been useful before. */
const ALLOW_FAILED_MS = 2_000;
/** A parent that lacks the stripe itself gets this multiple of the timeout. */
const STARVING_PATIENCE = 4;

/** Finds, watches and leaves the parent of each stripe. */
export class Parents {
  readonly #state: LiveState;
  readonly #feeds: Feed[];
  readonly #found: (addresses: RefusedMessage["candidates"]) => void;
  readonly #isRequested: (seq: number, stripe: number) => boolean;
  readonly #paths: OwnPaths;

  /** `found` receives the candidates of refusals; `isRequested` returns whether a chunk is being pulled. */
  constructor(
    state: LiveState,
    found: (addresses: RefusedMessage["candidates"]) => void,
    isRequested: (seq: number, stripe: number) => boolean,
  ) {
    this.#state = state;
    this.#found = found;
    this.#isRequested = isRequested;
    this.#feeds = Array.from({ length: state.setup.layout.stripes }, () => orphan(state.now));
    this.#paths = new OwnPaths(state);
  }

  /** The path of a stripe to this peer: its place in the tree. */
  pathOf(stripe: number): StripePath {
    return this.#paths.of(stripe);
  }

  /** The paths of a set of stripes. */
  pathsOf(stripes: number): StripePath[] {
    return this.#paths.all(stripes);
  }

  /** The current parent of the stripe. */
  parentOf(stripe: number): LivePeer | undefined {
    return this.#feeds[stripe]!.parent;
  }

  /** The number of stripes without a parent. */
  get orphans(): number {
    return this.#feeds.filter(({ parent }) => parent === undefined).length;
  }

  /** How much later than usual, in ms, a chunk may be before it is pulled. */
  toleranceMs(seq: number, stripe: number): number {
    const feed = this.#feeds[stripe]!;
    if (!feed.parent) return feed.next ? LATE_MS : ORPHAN_LATE_MS;
    // On a full line, it may be among the chunks that wait.
    if (isDoubtful(feed)) return DOUBTFUL_LATE_MS + this.#state.lineDelayMs;
    if (feed.parent.has(seq, stripe)) return LATE_MS + this.#state.lineDelayMs;
    // A parent that lacks the chunk pulls and forwards it, so that not every peer of a torn tree pulls.
    return STARVING_LATE_MS;
  }

  /** Whether the parent may be hostile: see {@link isDoubtful}. */
  isDoubtful(stripe: number): boolean {
    return isDoubtful(this.#feeds[stripe]!);
  }

  /** A chunk is late and will be pulled: if the parent claims to have it, that claim is false, or it sends too slowly. */
  missed(seq: number, stripe: number): void {
    const { parent } = this.#feeds[stripe]!;
    if (parent?.has(seq, stripe)) parent.brokePromise();
  }

  /** How long the stripe has had its present parent, or none, in ms; requests to others do not count. */
  unchangedMs(stripe: number): number {
    const { parent, since, orphanedAt, failures } = this.#feeds[stripe]!;
    // A new parent is given time to start, but not each of several that never do.
    if (failures > 0) return Number.POSITIVE_INFINITY;
    return this.#state.now - (parent ? since : orphanedAt);
  }

  /** A head was chosen: the search for parents starts now. */
  started(): void {
    for (const feed of this.#feeds) feed.orphanedAt = this.#state.now;
  }

  /** The stream continues after a pause: the silence was not the parents' fault. */
  resumed(): void {
    for (const feed of this.#feeds) {
      feed.lastChunkAt = this.#state.now;
      if (feed.chunks === 0) feed.since = this.#state.now;
    }
  }

  /** A chunk arrived from `from`. */
  chunkReceived(from: LivePeer, stripe: number, seq: number): void {
    const feed = this.#feeds[stripe]!;
    // A chunk that was pulled may arrive before the answer to SUB, which may be a refusal.
    if (feed.next === from && feed.isNextAccepted && hasPassed(this.#state, feed, stripe, seq))
      this.#switch(feed, stripe);
    if (feed.parent !== from) return;
    feed.lastChunkAt = this.#state.now;
    feed.lastSeq = Math.max(feed.lastSeq, seq);
    if (++feed.chunks >= PROOF_CHUNKS) feed.failures = 0;
  }

  /** The first piece of the stripe that the parent promised to send. */
  promisedFrom(stripe: number): number {
    return this.#feeds[stripe]!.promisedSeq;
  }

  accepted(from: LivePeer, { stripes, startSeq }: SubscribedMessage): void {
    for (const [stripe, feed] of this.#feeds.entries()) {
      if (((stripes >>> stripe) & 1) === 0 || feed.next !== from) continue;
      feed.isNextAccepted = true;
      // While another parent sends the stripe, older chunks come from that one.
      if (!feed.parent) feed.promisedSeq = Math.min(startSeq, this.#state.window.head + 1);
      feed.nextSince = this.#state.now;
      feed.refusals = 0;
      // The stripe has no parent, so this one takes over at once and our path is known.
      if (!feed.parent) this.#switch(feed, stripe);
    }
  }

  refused(from: LivePeer, message: RefusedMessage): void {
    const { now } = this.#state;
    // The candidates of a refusal that answers nothing would only be dialed.
    const isAnswer = ({ next, parent }: Feed, stripe: number) =>
      ((message.stripes >>> stripe) & 1) === 1 && (next === from || parent === from);
    if (!this.#feeds.some(isAnswer)) return;
    this.#found(message.candidates);
    for (const [stripe, feed] of this.#feeds.entries()) {
      if (((message.stripes >>> stripe) & 1) === 0) continue;
      if (feed.next === from) {
        feed.refusals++;
        // After its SUBOK, it serves us until we leave; the present parent is the better one now.
        if (feed.isNextAccepted) this.#unsubscribe(from, stripe, "moved");
        this.#dropNext(feed, stripe);
        from.retryAt = now + message.retryMs;
      } else if (feed.parent === from && !feed.next) {
        // Another child takes our place. The parent serves us until a new parent sends the stripe.
        from.retryAt = now + message.retryMs;
        const successor = message.candidates[0]?.address.host;
        const known = [...this.#state.peers.values()].find((peer) => peer.address.host === successor);
        feed.isDisplaced = true;
        this.seek(stripe, {}, known);
      }
    }
  }

  /** The parent has ended these stripes (UNSUB). */
  dropped(from: LivePeer, stripes: number): void {
    for (const [stripe, feed] of this.#feeds.entries()) {
      if (((stripes >>> stripe) & 1) === 0) continue;
      from.retryAt = this.#state.now + 2_000;
      if (feed.next === from) this.#dropNext(feed, stripe);
      if (feed.parent === from) this.#orphan(feed, stripe);
    }
  }

  /** Leaves all parents, because no player needs the stream. */
  release(): void {
    for (const [stripe, feed] of this.#feeds.entries()) {
      if (feed.next && feed.next !== feed.parent) this.#unsubscribe(feed.next, stripe, "moved");
      feed.next = undefined;
      if (feed.parent) this.#unsubscribe(feed.parent, stripe, "moved");
      this.#orphan(feed, stripe);
    }
  }

  left(peer: LivePeer): void {
    for (const [stripe, feed] of this.#feeds.entries()) {
      if (feed.next === peer) feed.next = undefined;
      if (feed.parent !== peer) continue;
      if (!peer.isProven) feed.failures++;
      this.#orphan(feed, stripe);
    }
  }

  /** The peer's paths have changed. A parent below us in the tree is a loop, so it is left. */
  pathsChanged(peer: LivePeer, paths: readonly StripePath[]): void {
    if (peer.parentOf === 0) return;
    for (const { stripe, depth, ancestors } of paths) {
      const feed = this.#feeds[stripe];
      if (feed?.parent !== peer) continue;
      this.#paths.follow(stripe, feed.parent);
      const isLoop = ancestors.includes(this.#state.setup.about.digest);
      if (isLoop || (depth !== NO_DEPTH && depth >= MAX_DEPTH)) this.#leave(feed, stripe, "bad");
    }
  }

  /** Checks all stripes: leaves late parents and requests missing ones. */
  round(): void {
    const asks = new Map<LivePeer, { mask: number; isUrgent: boolean }>();
    const { layout } = this.#state.setup;
    // Start at a random stripe, so that not all peers ask the same parents.
    const first = Math.floor(this.#state.setup.random() * layout.stripes);
    for (let i = 0; i < layout.stripes; i++) {
      const stripe = (first + i) % layout.stripes;
      const feed = this.#feeds[stripe]!;
      this.#watch(feed, stripe);
      if (!feed.next && (!feed.parent || feed.isDisplaced)) this.#choose(feed, stripe, asks);
    }
    for (const [peer, { mask, isUrgent }] of asks) this.#subscribe(peer, mask, isUrgent);
  }

  /** Whether a stripe has a parent, and no other is being asked for it. */
  isSettled(stripe: number): boolean {
    const { parent, next, isDisplaced } = this.#feeds[stripe]!;
    return parent !== undefined && next === undefined && !isDisplaced;
  }

  /** Asks for another parent of a stripe while the present one continues. Returns false if no peer can be asked. */
  seek(stripe: number, criteria: ParentCriteria, wanted?: LivePeer): boolean {
    const feed = this.#feeds[stripe]!;
    if (feed.next) return false;
    const peer =
      wanted && this.#mayAsk(wanted, stripe)
        ? wanted
        : chooseParent(this.#state, stripe, { except: feed.parent, ...criteria });
    if (!peer) return false;
    this.#setNext(feed, stripe, peer);
    this.#subscribe(peer, 1 << stripe, false);
    return true;
  }

  /** Discards the sequence numbers of the previous epoch. */
  reset(): void {
    for (const feed of this.#feeds) {
      feed.lastSeq = -1;
      feed.promisedSeq = 0;
    }
  }

  #watch(feed: Feed, stripe: number): void {
    const { now, setup, window, lineDelayMs } = this.#state;
    const { pieceMs } = setup.layout;
    const { next, parent } = feed;
    if (next) {
      const timeoutMs = next.rttMs + pieceMs + (feed.isNextAccepted ? FIRST_CHUNK_MS : SUB_ANSWER_MS);
      const isLate =
        now - feed.nextSince > timeoutMs + (next.headOf(stripe) > feed.lastSeq ? lineDelayMs : 0);
      if (isLate && !(feed.isNextAccepted && window.isEmptySince(stripe, feed.nextSince)))
        this.#fail(next, stripe, feed, true);
    }
    if (!parent || now <= feed.since) return;
    if (feed.chunks === 0) {
      const isLate =
        now - feed.since >
        parent.rttMs + pieceMs + FIRST_CHUNK_MS + (parent.headOf(stripe) > feed.lastSeq ? lineDelayMs : 0);
      if (isLate && !window.isEmptySince(stripe, feed.since)) this.#fail(parent, stripe, feed, false);
      return;
    }
    // Empty chunks are never sent, so they arrive with their header.
    const owed = window.firstOwed(stripe, feed.lastSeq);
    // If no other peer had newer pieces, the source is silent, not the parent.
    if (!owed || window.head <= owed.seq) return;
    // A live parent that lacks the stripe is repairing it; a silent one is gone.
    const timeoutMs = STRIPE_TIMEOUT_MS + pieceMs + lineDelayMs;
    const isActive = now - parent.heardAt <= timeoutMs && parent.usefulChunks >= PROOF_CHUNKS;
    const isStarving = isActive && parent.headOf(stripe) <= feed.lastSeq;
    const silentMs = now - Math.max(feed.lastChunkAt, owed.knownAt);
    if (silentMs <= timeoutMs * (isStarving ? STARVING_PATIENCE : 1)) return;
    if (isStarving) this.#leave(feed, stripe, "moved");
    else this.#fail(parent, stripe, feed, false);
  }

  #choose(feed: Feed, stripe: number, asks: Map<LivePeer, { mask: number; isUrgent: boolean }>): void {
    const orphanMs = feed.parent ? 0 : this.#state.now - feed.orphanedAt;
    const allowsLoaded = orphanMs > ALLOW_LOADED_MS;
    const criteria = {
      except: feed.parent,
      // While a parent still sends, do not assume that other peers lack the stripe.
      lastSeq: feed.parent ? -1 : feed.lastSeq,
      allowsLoaded,
      allowsFailed: orphanMs > ALLOW_FAILED_MS,
    };
    const proven =
      feed.failures > 0 &&
      chooseParent(this.#state, stripe, { ...criteria, allowsLoaded: true, onlyProven: true });
    const peer = proven || chooseParent(this.#state, stripe, criteria);
    if (!peer) return;
    this.#setNext(feed, stripe, peer);
    const isUrgent = feed.refusals >= 2 || allowsLoaded || peer.about.homeStripe !== stripe;
    const ask = asks.get(peer) ?? { mask: 0, isUrgent: false };
    asks.set(peer, { mask: ask.mask | (1 << stripe), isUrgent: ask.isUrgent || isUrgent });
  }

  #mayAsk(peer: LivePeer, stripe: number): boolean {
    const { digest } = this.#state.setup.about;
    return (
      peer.hasSentHello &&
      peer.avoidUntil <= this.#state.now &&
      !peer.paths[stripe]?.ancestors.includes(digest)
    );
  }

  #setNext(feed: Feed, stripe: number, peer: LivePeer): void {
    feed.next = peer;
    feed.nextSince = this.#state.now;
    feed.isNextAccepted = false;
    feed.nextChunks = 0;
    feed.nextSeq = -1;
    peer.parentOf |= 1 << stripe;
  }

  #subscribe(peer: LivePeer, mask: number, isDesperate: boolean): void {
    const { window, epoch } = this.#state;
    const startSeq = Math.max(this.#state.nextSeq, this.#state.startSeq, window.head - 31, 0);
    const have: number[] = [];
    for (const [stripe] of this.#feeds.entries()) {
      if (((mask >>> stripe) & 1) === 0) continue;
      have.push(bitsOf(startSeq, (seq) => window.has(seq, stripe) || this.#isRequested(seq, stripe)));
    }
    const backfillPieces = Math.min(32, this.#state.piecesIn(BACKFILL_MS));
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

  /** The accepted parent takes over. */
  #switch(feed: Feed, stripe: number): void {
    const { now } = this.#state;
    const old = feed.parent;
    const next = feed.next!;
    if (old && old !== next) this.#unsubscribe(old, stripe, "moved");
    feed.hasReplacedProven = old?.isProven === true;
    feed.parent = next;
    feed.next = undefined;
    feed.isDisplaced = false;
    feed.since = now;
    feed.lastChunkAt = now;
    feed.chunks = 0;
    feed.refusals = 0;
    this.#paths.follow(stripe, feed.parent);
  }

  #fail(peer: LivePeer, stripe: number, feed: Feed, isNext: boolean): void {
    // A peer that has never sent a chunk is avoided longer each time.
    const more = peer.usefulChunks === 0 ? 2 ** Math.min(peer.failures++, 4) : 1;
    peer.avoidUntil = this.#state.now + AVOID_MS * more;
    peer.usefulChunks = Math.min(peer.usefulChunks, PROOF_CHUNKS - 1);
    this.#unsubscribe(peer, stripe, "bad");
    if (isNext) feed.next = undefined;
    else this.#orphan(feed, stripe);
    feed.refusals++;
    feed.failures++;
  }

  #leave(feed: Feed, stripe: number, reason: "moved" | "bad"): void {
    this.#unsubscribe(feed.parent!, stripe, reason);
    feed.parent!.retryAt = this.#state.now + 1_000;
    this.#orphan(feed, stripe);
  }

  #unsubscribe(peer: LivePeer, stripe: number, reason: "moved" | "bad"): void {
    peer.parentOf &= ~(1 << stripe);
    this.#state.send(peer, { kind: "unsubscribe", stripes: 1 << stripe, reason });
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
    this.#paths.follow(stripe, feed.parent);
  }
}
