import type { LiveCandidate } from "../../wire/live/endpoint.ts";
import { MAX_CANDIDATES } from "../../wire/live/limits.ts";
import { stripesOf } from "../../wire/live/message-kind.ts";
import type { RefusalReason, SubscribeMessage } from "../../wire/live/subscription.ts";
import { ADOPTING_RANK, admit, type Child, holds, isGivingWay, rankOf, scoreOf } from "./admission.ts";
import type { NewChunk } from "./chunks.ts";
import { type LiveInput, PRIORITY } from "./contract.ts";
import type { Headers } from "./headers.ts";
import {
  BACKFILL_MS,
  CARRIED_SHARE,
  DISPLACED_MS,
  MAX_CHILD_BACKLOG_MS,
  SOURCE_CHILDREN,
  SUBSCRIPTION_SHARE,
} from "./limits.ts";
import { NO_DEPTH } from "./messages.ts";
import type { Parents } from "./parents.ts";
import { candidateOf, type LivePeer } from "./peer.ts";
import type { SpareUpload } from "./spare-upload.ts";
import type { LiveState } from "./state.ts";
import type { LivePiece } from "./window.ts";

const RETRY_MS = 2_000;
const STARVING_RETRY_MS = 1_000;
/** Backlog that would wait longer than this is not promised: behind all live data it would arrive too late. */
const BACKLOG_MS = 100;

/** The children of each stripe: which peers are accepted, and what is sent to them. */
export class Children {
  readonly #state: LiveState;
  readonly #headers: Headers;
  readonly #parents: Parents;
  readonly #spareUpload: SpareUpload;
  readonly #byStripe: Child[][];
  /** For a source: the maximum number of children, by stripe. */
  readonly #sourceLimits: number[];
  /** When the children beyond a smaller offer are dropped. */
  #shrinkAt = Number.POSITIVE_INFINITY;

  constructor(state: LiveState, headers: Headers, parents: Parents, spareUpload: SpareUpload) {
    this.#state = state;
    this.#headers = headers;
    this.#parents = parents;
    this.#spareUpload = spareUpload;
    this.#byStripe = Array.from({ length: state.setup.layout.stripes }, () => []);
    this.#sourceLimits = this.#byStripe.map(() => SOURCE_CHILDREN);
  }

  /** The number of stripes that are served at once (live protocol: Scheduling). */
  get slots(): number {
    if (this.#state.isIdle) return 0;
    if (!this.#state.isSource) return this.#uploadSlots;
    return Math.min(
      this.#uploadSlots,
      this.#sourceLimits.reduce((sum, limit) => sum + limit, 0),
    );
  }

  get #uploadSlots(): number {
    return Math.floor((SUBSCRIPTION_SHARE * this.#state.uploadBytesPerSecond) / this.#state.stripeRate);
  }

  /** The number of stripes being sent. */
  get used(): number {
    return this.#byStripe.reduce((sum, children) => sum + children.length, 0);
  }

  /** The children of a stripe. */
  of(stripe: number): readonly Child[] {
    return this.#byStripe[stripe]!;
  }

  /** For a source: the maximum number of children of a stripe. */
  sourceLimitOf(stripe: number): number {
    return this.#sourceLimits[stripe]!;
  }

  /** For a source: sets the maximum number of children of a stripe. */
  setSourceLimit(stripe: number, limit: number): void {
    this.#sourceLimits[stripe] = limit;
  }

  /** Answers a SUB: grants or refuses each stripe, and sends the backlog of granted ones. */
  subscribe(peer: LivePeer, message: SubscribeMessage): void {
    const { epoch } = this.#state;
    let yes = 0;
    const no = new Map<RefusalReason, number>();
    for (const [stripe] of this.#byStripe.entries()) {
      if (((message.stripes >>> stripe) & 1) === 0) continue;
      const reason = this.#decide(peer, stripe, message);
      if (reason === undefined) yes |= 1 << stripe;
      else no.set(reason, (no.get(reason) ?? 0) | (1 << stripe));
    }
    if (yes !== 0) {
      const startSeq = this.#firstSeq(peer, message, yes);
      for (const [stripe, children] of this.#byStripe.entries()) {
        const child = ((yes >>> stripe) & 1) === 1 && children.find((other) => other.peer === peer);
        if (child) child.startSeq = startSeq;
      }
      this.#state.send(peer, { kind: "subscribed", stripes: yes, epoch, startSeq });
      this.#backfill(peer, yes, message, startSeq);
    }
    for (const [reason, stripes] of no) this.#refuse(peer, stripes, reason);
  }

  /** Removes a child from a set of stripes. */
  unsubscribe(peer: LivePeer, stripes: number): void {
    for (const [stripe, children] of this.#byStripe.entries()) {
      if (((stripes >>> stripe) & 1) === 0) continue;
      const at = children.findIndex((child) => child.peer === peer);
      if (at >= 0) children.splice(at, 1);
      peer.childOf &= ~(1 << stripe);
    }
  }

  /** Forwards a new chunk at once. A late chunk goes at repair priority (live protocol: Forwarding). */
  forward({ piece, stripe, from, isLate }: NewChunk): void {
    const { lagMs } = this.#state.setup;
    const { seq } = piece;
    for (const child of this.#byStripe[stripe]!) {
      const { peer } = child;
      if (peer === from || seq < child.startSeq || peer.has(seq, stripe)) continue;
      if (!peer.markSent(seq, stripe)) continue;
      this.#state.chunkSent(peer, piece, stripe);
      if (this.#headers.travelsWith(seq, stripe)) this.#headers.pass(piece.header, peer, false);
      this.#state.send(
        peer,
        { kind: "chunk", epoch: this.#state.epoch, seq, stripe, isLate, bytes: piece.chunks[stripe]! },
        isLate ? PRIORITY.repair : PRIORITY.live,
        lagMs - this.#state.timeline.latenessMs(piece.header.value.timestampMs, this.#state.now),
      );
    }
  }

  /** Forwards a header that arrived after chunks of its piece. */
  passHeader(piece: LivePiece, from: LivePeer | undefined): void {
    for (const [stripe, children] of this.#byStripe.entries()) {
      if (!this.#headers.travelsWith(piece.seq, stripe)) continue;
      for (const { peer, startSeq } of children) {
        if (peer !== from && piece.seq >= startSeq) this.#headers.pass(piece.header, peer, false);
      }
    }
  }

  /** The live data of a child waits too long: drops a stripe, or all that its connection does not carry, its home stripe last. */
  backlog(peer: LivePeer, { waitMs, bytesPerSecond }: LiveInput & { readonly kind: "backlog" }): void {
    const { peers, recentStripeRate, ownLine, isSource, now } = this.#state;
    peer.backlogAt = now;
    peer.backlogRate = bytesPerSecond;
    if (waitMs <= MAX_CHILD_BACKLOG_MS || peer.childOf === 0) return;
    if (!isSource && ownLine.overloaded(peers.values(), recentStripeRate, now)) {
      this.shrink();
      return;
    }
    const home = peer.about.homeStripe;
    const given = stripesOf(peer.childOf).sort((a, b) => Number(b === home) - Number(a === home));
    let carried = given.length - 1;
    // A connection that takes about what it is given was only interrupted, for example by a busy processor.
    if (bytesPerSecond < CARRIED_SHARE * given.length * recentStripeRate) {
      carried = Math.min(carried, Math.floor((SUBSCRIPTION_SHARE * bytesPerSecond) / recentStripeRate));
      peer.limitStripes(Math.max(1, carried), now);
    }
    const dropped = given.slice(carried).reduce((mask, stripe) => mask | (1 << stripe), 0);
    this.#drop(peer, dropped, "slow");
  }

  /** Drops all children, because this engine receives nothing that it could forward. */
  release(): void {
    for (const peer of this.#state.peers.values()) this.#drop(peer, peer.childOf, "moved");
  }

  /** This peer offers less upload: the children beyond it are asked to find other parents, and dropped a little later. */
  offered(): void {
    for (const child of this.#excess) this.#replace(child, undefined, 10 * RETRY_MS);
    this.#shrinkAt = this.#state.now + DISPLACED_MS;
  }

  /** Drops the children that the upload does not carry. */
  shrink(): void {
    for (const { peer, stripe } of this.#excess) this.#drop(peer, 1 << stripe, "moved");
  }

  /** The children beyond the slots: those of other stripes than the home stripe first, the newest first. */
  get #excess(): readonly Child[] {
    const { homeStripe } = this.#state.setup.about;
    const children = this.#byStripe
      .flat()
      .sort((a, b) => Number(a.stripe === homeStripe) - Number(b.stripe === homeStripe) || b.since - a.since);
    return children.slice(0, Math.max(0, this.used - this.slots));
  }

  /** Ends stripes of a child. */
  #drop(peer: LivePeer, stripes: number, reason: "moved" | "slow"): void {
    if (stripes === 0) return;
    this.unsubscribe(peer, stripes);
    this.#state.send(peer, { kind: "unsubscribe", stripes, reason });
  }

  left(peer: LivePeer): void {
    this.unsubscribe(peer, peer.childOf);
    this.#state.receipts.left(peer, this.#state.now);
  }

  /** A new epoch may start at any sequence number. */
  restarted(): void {
    for (const children of this.#byStripe) for (const child of children) child.startSeq = 0;
  }

  /** Removes children that show no receipt, and displaced ones that have not left. Displaced ones that feed others stay until they
   * find a parent. */
  round(): void {
    if (this.#state.now >= this.#shrinkAt) {
      this.#shrinkAt = Number.POSITIVE_INFINITY;
      this.shrink();
    }
    for (const peer of this.#state.peers.values()) {
      if (!this.#state.receipts.permits(peer, this.#state.now)) this.#drop(peer, peer.childOf, "slow");
    }
    for (const [stripe, children] of this.#byStripe.entries()) {
      for (const child of [...children]) {
        if (child.leavesAt === undefined || child.leavesAt > this.#state.now) continue;
        if (this.#rank(child.peer, stripe) >= ADOPTING_RANK) {
          // Removing it would cut off all peers below it, so the reserve of the upload carries it for now.
          child.leavesAt = this.used > this.slots ? this.#state.now + DISPLACED_MS : undefined;
          continue;
        }
        // It has found no parent that delivers, perhaps because the newcomer does not.
        if (this.#state.isSource && this.used <= this.#uploadSlots) {
          child.leavesAt = this.#state.now + DISPLACED_MS;
          continue;
        }
        this.#drop(child.peer, 1 << stripe, "moved");
      }
    }
  }

  /** For a source with a lowered limit: displaces the least useful child of the stripe, one at a time. */
  trim(): void {
    for (const [stripe, children] of this.#byStripe.entries()) {
      if (
        children.length <= this.#sourceLimits[stripe]! ||
        children.some(({ leavesAt }) => leavesAt !== undefined)
      )
        continue;
      const rank = ({ peer }: Child) => this.#rank(peer, stripe);
      const least = children.reduce((a, b) => (rank(b) < rank(a) ? b : a));
      const best = children.reduce((a, b) => (rank(b) > rank(a) ? b : a)).peer;
      this.#replace(least, best, 10 * RETRY_MS);
    }
  }

  #decide(peer: LivePeer, stripe: number, message: SubscribeMessage): RefusalReason | undefined {
    const { setup, now, epoch } = this.#state;
    const path = this.#parents.pathOf(stripe);
    if (message.epoch !== epoch && message.epoch !== 0) return "no-content";
    if (path.ancestors.includes(peer.about.digest)) return "loop";
    if (path.depth === NO_DEPTH) return "behind";
    const children = this.#byStripe[stripe]!;
    const held = children.find((child) => child.peer === peer);
    if (held) {
      held.leavesAt = undefined;
      return undefined;
    }
    if (!this.#state.receipts.permits(peer, now)) return "full";
    // Its connection does not carry more.
    if (peer.childCount >= peer.carriedStripes(now)) return "full";
    this.#dropSilent(stripe);
    if (this.#state.isSource && this.used >= this.#uploadSlots) this.#dropFreeRider();
    const result = admit(children, peer, stripe, {
      about: setup.about,
      slots: this.slots,
      used: this.used,
      perStripe: this.#state.isSource ? this.#sourceLimits[stripe]! : undefined,
      isOverloaded: this.used > this.#uploadSlots,
      stripeRate: this.#state.stripeRate,
      isDesperate: message.isDesperate,
      isOverdrawn: this.#spareUpload.isOverdrawn(now),
      guests: () => this.#guests(),
      now,
    });
    if (result === "full") return "full";
    if (result !== "free") {
      const isSuccessor = result.stripe === stripe && this.#rank(peer, stripe) >= ADOPTING_RANK;
      this.#replace(result, isSuccessor ? peer : undefined, RETRY_MS);
    }
    // The children that forward to the most peers get each chunk first.
    const rank = this.#rank(peer, stripe);
    const at = children.findIndex((child) => this.#rank(child.peer, stripe) < rank);
    children.splice(at < 0 ? children.length : at, 0, {
      peer,
      stripe,
      since: now,
      startSeq: message.startSeq,
      leavesAt: undefined,
    });
    peer.childOf |= 1 << stripe;
    return undefined;
  }

  /** Asks a child to find another parent, which may be `successor`, and serves it meanwhile. */
  #replace(child: Child, successor: LivePeer | undefined, retryMs: number): void {
    const { peer, stripe } = child;
    child.leavesAt = this.#state.now + DISPLACED_MS;
    peer.displacedAt = this.#state.now;
    const first = successor?.isReachable ? [{ address: successor.address, freeSlots: 1, lagMs: 0 }] : [];
    const candidates = [...first, ...this.#candidates(stripe, peer)].slice(0, MAX_CANDIDATES);
    this.#state.send(peer, { kind: "refused", stripes: 1 << stripe, reason: "full", retryMs, candidates });
  }

  #guests(): readonly Child[] {
    const { homeStripe } = this.#state.setup.about;
    return this.#byStripe.flatMap((children, stripe) => (stripe === homeStripe ? [] : children));
  }

  #rank(peer: LivePeer, stripe: number): number {
    return rankOf(peer, stripe, this.#state.stripeRate, this.#state.now);
  }

  /** A silent child loses its place when another peer asks for the stripe. */
  #dropSilent(stripe: number): void {
    const { now } = this.#state;
    for (const { peer } of [...this.#byStripe[stripe]!]) {
      if (peer.isSilent(now)) this.unsubscribe(peer, 1 << stripe);
    }
  }

  /** Ends the service of a displaced free rider, because its upload is needed. */
  #dropFreeRider(): void {
    const child = this.#byStripe.flat().find((each) => isGivingWay(each, this.#state));
    if (child) this.#drop(child.peer, 1 << child.stripe, "moved");
  }

  /** The first piece of backlog: within the limit, and not more than the spare upload can send soon. */
  #firstSeq(peer: LivePeer, message: SubscribeMessage, stripes: number): number {
    const { window, now, share } = this.#state;
    if (!share.permits(peer, now)) return Math.max(message.startSeq, window.head + 1);
    const most = Math.min(message.backfillPieces, this.#state.piecesIn(BACKFILL_MS));
    const first = Math.max(message.startSeq, window.head + 1 - most, 0);
    const each = stripesOf(stripes);
    let room = this.#spareUpload.within(BACKLOG_MS, now) / this.#state.chunkBytes;
    for (let seq = window.head; seq >= first; seq--) {
      for (const stripe of each) if (!holds(message, seq, stripe)) room--;
      if (room < 0) return seq + 1;
    }
    return first;
  }

  #backfill(peer: LivePeer, stripes: number, message: SubscribeMessage, firstSeq: number): void {
    const { window, epoch, setup, timeline, now } = this.#state;
    for (let seq = firstSeq; seq <= window.head; seq++) {
      const piece = window.piece(seq);
      if (!piece) continue;
      const usefulMs = setup.lagMs - timeline.latenessMs(piece.header.value.timestampMs, now);
      for (const stripe of stripesOf(stripes)) {
        if (holds(message, seq, stripe)) continue;
        if (this.#headers.travelsWith(seq, stripe)) this.#headers.pass(piece.header, peer, false);
        const bytes = piece.chunks[stripe]!;
        if (!window.has(seq, stripe) || bytes.length === 0 || !peer.markSent(seq, stripe)) continue;
        this.#spareUpload.spend(bytes.length, now);
        this.#state.chunkSent(peer, piece, stripe);
        this.#state.send(
          peer,
          { kind: "chunk", epoch, seq, stripe, isLate: true, bytes },
          PRIORITY.backfill,
          usefulMs,
        );
      }
    }
  }

  #refuse(peer: LivePeer, stripes: number, reason: RefusalReason): void {
    const stripe = 31 - Math.clz32(stripes);
    const candidates = this.#candidates(stripe, peer);
    // The source makes room for peers that receive nothing.
    const isStarving = this.#state.isSource && peer.depthOf(stripe) === NO_DEPTH;
    const retryMs = isStarving ? STARVING_RETRY_MS : RETRY_MS;
    this.#state.send(peer, { kind: "refused", stripes, reason, retryMs, candidates });
  }

  /** Candidates with free slots, those with this home stripe first. */
  #candidates(stripe: number, not: LivePeer): LiveCandidate[] {
    // A peer that will forward the stripe should be near the source, so it is referred to our parent.
    const parent = this.#parents.parentOf(stripe);
    const { about } = this.#state.setup;
    const above = about.homeStripe !== stripe || this.#rank(not, stripe) >= 2 ? parent : undefined;
    const upwards = above?.isReachable && above !== not ? [above] : [];
    const others = [...this.#state.peers.values()]
      .filter(
        (peer) => peer !== not && peer !== above && peer.isReachable && (peer.window?.freeSlots ?? 0) > 0,
      )
      .sort((a, b) => scoreOf(b, stripe) - scoreOf(a, stripe))
      .slice(0, MAX_CANDIDATES - upwards.length);
    return [...upwards, ...others].map(candidateOf);
  }
}
