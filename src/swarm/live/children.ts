import type { LiveCandidate } from "../../wire/live-address.ts";
import { stripesIn } from "../../wire/live-kinds.ts";
import type { RefusalReason, SubscribeMessage } from "../../wire/live-subscription.ts";
import { ADOPTING_RANK, admit, type Child, rankOf } from "./admission.ts";
import type { NewChunk } from "./chunks.ts";
import { PRIORITY } from "./contract.ts";
import type { Headers } from "./headers.ts";
import { DISPLACED_MS, MAX_CHILD_BACKLOG_MS, SOURCE_CHILDREN } from "./limits.ts";
import { NO_DEPTH } from "./messages.ts";
import type { Parents } from "./parents.ts";
import type { LivePeer } from "./peer.ts";
import type { Spare } from "./spare.ts";
import type { LiveState } from "./state.ts";
import type { LivePiece } from "./window.ts";

const RETRY_MS = 2_000;
/** Backlog that would wait longer is not promised: behind all that is live it may wait until it is of no use. */
const BACKLOG_MS = 100;

/** Those whom we give stripes: who may come, and what each gets. */
export class Children {
  readonly #state: LiveState;
  readonly #headers: Headers;
  readonly #parents: Parents;
  readonly #spare: Spare;
  readonly #byStripe: Child[][];
  /** Of the source: children each stripe may have. */
  readonly #places: number[];

  constructor(state: LiveState, headers: Headers, parents: Parents, spare: Spare) {
    this.#state = state;
    this.#headers = headers;
    this.#parents = parents;
    this.#spare = spare;
    this.#byStripe = Array.from({ length: state.setup.layout.stripes }, () => []);
    this.#places = this.#byStripe.map(() => SOURCE_CHILDREN);
  }

  /** Stripes that may be given away at once, out of the upload (rule: headroom). */
  get slots(): number {
    const { rules, about } = this.#state.setup;
    const byUpload = Math.floor((rules.headroom * about.uploadBytesPerSecond) / this.#state.stripeRate);
    return this.#state.isSource
      ? Math.min(
          byUpload,
          this.#places.reduce((sum, places) => sum + places, 0),
        )
      : byUpload;
  }

  /** Stripes given now. */
  get used(): number {
    return this.#byStripe.reduce((sum, children) => sum + children.length, 0);
  }

  /** Children of a stripe, to be named to others. */
  of(stripe: number): readonly Child[] {
    return this.#byStripe[stripe]!;
  }

  /** Of the source: how many children a stripe may have. */
  placesOf(stripe: number): number {
    return this.#places[stripe]!;
  }

  /** Of the source: sets how many children a stripe may have. */
  setPlaces(stripe: number, places: number): void {
    this.#places[stripe] = places;
  }

  /** SUB: yes or no for each stripe, and the backlog that goes with a yes. */
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
      const startSeq = this.#firstSeq(message, yes);
      for (const [stripe, children] of this.#byStripe.entries()) {
        const child = ((yes >>> stripe) & 1) === 1 && children.find((other) => other.peer === peer);
        if (child) child.startSeq = startSeq;
      }
      this.#state.send(peer, { kind: "subscribed", stripes: yes, epoch, startSeq });
      this.#backfill(peer, yes, message, startSeq);
    }
    for (const [reason, stripes] of no) this.#refuse(peer, stripes, reason);
  }

  /** The child goes. */
  unsubscribe(peer: LivePeer, stripes: number): void {
    for (const [stripe, children] of this.#byStripe.entries()) {
      if (((stripes >>> stripe) & 1) === 0) continue;
      const at = children.findIndex((child) => child.peer === peer);
      if (at >= 0) children.splice(at, 1);
      peer.childOf &= ~(1 << stripe);
    }
  }

  /** Forwards a new chunk, at once; late ones yield to those that are on time (rule: late chunks). */
  forward({ piece, stripe, from, isLate }: NewChunk): void {
    const { rules, lagMs } = this.#state.setup;
    const { seq } = piece;
    const yields = isLate && rules.yieldsLate;
    for (const child of this.#byStripe[stripe]!) {
      const { peer } = child;
      if (peer === from || seq < child.startSeq || peer.has(seq, stripe)) continue;
      if (!peer.give(seq, stripe)) continue;
      if (this.#headers.travelsWith(seq, stripe)) this.#headers.pass(piece.header, peer, false);
      this.#state.send(
        peer,
        { kind: "chunk", epoch: this.#state.epoch, seq, stripe, isLate, bytes: piece.chunks[stripe]! },
        yields ? PRIORITY.repair : PRIORITY.live,
        lagMs - this.#state.timeline.latenessMs(piece.header.value.timestampMs, this.#state.now),
      );
    }
  }

  /** A header that came after chunks which it travels with. */
  passHeader(piece: LivePiece, from: LivePeer | undefined): void {
    for (const [stripe, children] of this.#byStripe.entries()) {
      if (!this.#headers.travelsWith(piece.seq, stripe)) continue;
      for (const { peer, startSeq } of children) {
        if (peer !== from && piece.seq >= startSeq) this.#headers.pass(piece.header, peer, false);
      }
    }
  }

  /** Live bytes for this child wait too long: it loses a stripe, and the others do not wait. */
  backlog(peer: LivePeer, waitMs: number): void {
    if (waitMs <= MAX_CHILD_BACKLOG_MS || peer.childOf === 0) return;
    const stripe = 31 - Math.clz32(peer.childOf);
    this.unsubscribe(peer, 1 << stripe);
    this.#state.send(peer, { kind: "unsubscribe", stripes: 1 << stripe, reason: "slow" });
  }

  left(peer: LivePeer): void {
    this.unsubscribe(peer, peer.childOf);
  }

  /** A new epoch: its numbers may begin anywhere. */
  restarted(): void {
    for (const children of this.#byStripe) for (const child of children) child.startSeq = 0;
  }

  /** Displaced children that have not gone by themselves lose their place; those who feed others, only for a better one. */
  round(): void {
    for (const [stripe, children] of this.#byStripe.entries()) {
      for (const child of [...children]) {
        if (child.leavesAt === undefined || child.leavesAt > this.#state.now) continue;
        if (this.#rank(child.peer, stripe) >= ADOPTING_RANK) {
          // All below it would be torn off with it: the reserve carries it until it has found somebody.
          child.leavesAt = this.used > this.slots ? this.#state.now + DISPLACED_MS : undefined;
          continue;
        }
        this.unsubscribe(child.peer, 1 << stripe);
        this.#state.send(child.peer, { kind: "unsubscribe", stripes: 1 << stripe, reason: "moved" });
      }
    }
  }

  /** The source gives a stripe to fewer than before: the least useful child goes, one at a time. */
  trim(): void {
    for (const [stripe, children] of this.#byStripe.entries()) {
      if (children.length <= this.#places[stripe]! || children.some(({ leavesAt }) => leavesAt !== undefined))
        continue;
      const rank = ({ peer }: Child) => this.#rank(peer, stripe);
      const least = children.reduce((a, b) => (rank(b) < rank(a) ? b : a));
      const best = children.reduce((a, b) => (rank(b) > rank(a) ? b : a)).peer;
      least.leavesAt = this.#state.now + DISPLACED_MS;
      const heir = best.isReachable ? [{ address: best.address, freeSlots: 1, lagMs: 0 }] : [];
      const candidates = [...heir, ...this.#candidates(stripe, least.peer)].slice(0, 8);
      this.#state.send(least.peer, {
        kind: "refused",
        stripes: 1 << stripe,
        reason: "full",
        retryMs: 10 * RETRY_MS,
        candidates,
      });
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
    this.#forget(stripe);
    const verdict = admit(children, peer, stripe, {
      about: setup.about,
      slots: this.slots,
      used: this.used,
      perStripe: this.#state.isSource ? this.#places[stripe]! : undefined,
      stripeRate: this.#state.stripeRate,
      isDesperate: message.isDesperate,
      isOverdrawn: this.#spare.isOverdrawn(now),
      guests: () => this.#guests(),
      now,
    });
    if (verdict === "full") return "full";
    if (verdict !== "free") {
      verdict.leavesAt = now + DISPLACED_MS;
      const heir = { address: peer.address, freeSlots: 1, lagMs: 0 };
      const candidates =
        peer.isReachable && verdict.stripe === stripe
          ? [heir, ...this.#candidates(stripe, verdict.peer)]
          : this.#candidates(verdict.stripe, verdict.peer);
      this.#state.send(verdict.peer, {
        kind: "refused",
        stripes: 1 << verdict.stripe,
        reason: "full",
        retryMs: RETRY_MS,
        candidates: candidates.slice(0, 8),
      });
    }
    // Who hands it on to most gets each chunk first.
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

  #guests(): readonly Child[] {
    const { homeStripe } = this.#state.setup.about;
    return this.#byStripe.flatMap((children, stripe) => (stripe === homeStripe ? [] : children));
  }

  #rank(peer: LivePeer, stripe: number): number {
    return rankOf(peer, stripe, this.#state.stripeRate, this.#state.now);
  }

  /** Who has been silent for long holds no place that another asks for. */
  #forget(stripe: number): void {
    const { now } = this.#state;
    for (const { peer } of [...this.#byStripe[stripe]!]) {
      if (peer.isQuiet(now)) this.unsubscribe(peer, 1 << stripe);
    }
  }

  /** A child gets no more backlog than the rule allows, and none that would wait: it pulls that from who has room. */
  #firstSeq(message: SubscribeMessage, stripes: number): number {
    const { window, setup, now } = this.#state;
    const most = Math.min(message.backfillPieces, this.#state.piecesIn(setup.rules.backfillMs));
    const first = Math.max(message.startSeq, window.head + 1 - most, 0);
    const each = stripesOf(stripes);
    let room = this.#spare.within(BACKLOG_MS, now) / this.#state.chunkBytes;
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
        if (!window.has(seq, stripe) || bytes.length === 0 || !peer.give(seq, stripe)) continue;
        this.#spare.spend(bytes.length, now);
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
    this.#state.send(peer, { kind: "refused", stripes, reason, retryMs: RETRY_MS, candidates });
  }

  /** Others that may have room: first those below us whose home the stripe is. */
  #candidates(stripe: number, not: LivePeer): LiveCandidate[] {
    // Who is to hand the stripe on belongs as near to the source as it can get: it is told who is above us.
    const parent = this.#parents.parentOf(stripe);
    const { about } = this.#state.setup;
    const above = about.homeStripe !== stripe || this.#rank(not, stripe) >= 2 ? parent : undefined;
    const upwards = above?.isReachable && above !== not ? [above] : [];
    const others = [...this.#state.peers.values()]
      .filter(
        (peer) => peer !== not && peer !== above && peer.isReachable && (peer.window?.freeSlots ?? 0) > 0,
      )
      .sort((a, b) => worth(b, stripe) - worth(a, stripe))
      .slice(0, 8 - upwards.length);
    return [...upwards, ...others].map(({ address, window }) => ({
      address,
      freeSlots: window?.freeSlots ?? 0,
      lagMs: window?.lagMs ?? 0,
    }));
  }
}

function stripesOf(mask: number): number[] {
  const stripes: number[] = [];
  for (let stripe = 0; mask >>> stripe !== 0; stripe++)
    if (((mask >>> stripe) & 1) === 1) stripes.push(stripe);
  return stripes;
}

/** Whether a SUB says that its sender has the chunk already. */
function holds({ stripes, startSeq, have }: SubscribeMessage, seq: number, stripe: number): boolean {
  const offset = seq - startSeq;
  const at = stripesIn(stripes & ((1 << stripe) - 1));
  return offset >= 0 && offset < 32 && (((have[at] ?? 0) >>> offset) & 1) === 1;
}

function worth(peer: LivePeer, stripe: number): number {
  return (peer.about.homeStripe === stripe ? 1_000 : 0) + (peer.window?.freeSlots ?? 0);
}
