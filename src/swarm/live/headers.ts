import { equalBytes } from "../../base/bytes.ts";
import { isTimely } from "../../wire/live-trust.ts";
import { Chain } from "./chain.ts";
import type { Conduct } from "./conduct.ts";
import { HEADER_COPIES, MAX_TOLD, STALE_HEAD_MS } from "./limits.ts";
import type { SignedHeader } from "./messages.ts";
import { HEADER_SLOT, type LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** Newest headers that are all too late for so long mean that clocks have changed. */
const LATE_HEADS_MS = 1_000;

/** Headers: verified once, kept once, passed on. */
export class Headers {
  readonly #state: LiveState;
  readonly #conduct: Conduct;
  readonly #added: (header: SignedHeader, from: LivePeer | undefined) => void;
  readonly #restarted: () => void;
  readonly #chain: Chain;
  #lateHeads = 0;

  /** `added` hears of each new header, `restarted` of a new epoch (before its first header is added). */
  constructor(
    state: LiveState,
    conduct: Conduct,
    added: (header: SignedHeader, from: LivePeer | undefined) => void,
    restarted: () => void,
  ) {
    this.#state = state;
    this.#conduct = conduct;
    this.#added = added;
    this.#restarted = restarted;
    this.#chain = new Chain(state);
  }

  /** Takes a header from a peer. False where the peer is gone for it. */
  take(header: SignedHeader, peer: LivePeer): boolean {
    const { window, epoch } = this.#state;
    const { value, bytes } = header;
    const isOfFuture = this.isOfFuture(header);
    if (isOfFuture) peer.isAhead = true;
    if (peer.tell(value.seq, HEADER_SLOT) > MAX_TOLD) {
      this.#conduct.strike(peer, "the same header again and again");
      return this.#isHere(peer);
    }
    if (this.#chain.isOther(header)) return true;
    if (this.#state.isSource) return this.#ofAnother(header, peer);
    if (value.epoch < epoch || (value.epoch === epoch && window.isTooOld(value.seq))) {
      this.#conduct.strike(peer, "headers of long ago");
      return this.#isHere(peer);
    }
    const known = value.epoch === epoch ? window.piece(value.seq) : undefined;
    if (known) {
      peer.giveHeader(value.seq);
      if (!equalBytes(known.header.bytes, bytes)) this.#differs(header, peer);
      return this.#isHere(peer);
    }
    // What is not to be taken in any case costs no signature.
    if (isOfFuture || !this.#isTimely(header)) {
      this.#conduct.strike(peer, "a header of another time");
      return this.#isHere(peer);
    }
    if (!this.#isGenuine(header, peer)) return this.#isHere(peer);
    if (value.epoch > epoch) {
      this.#state.epoch = value.epoch;
      window.reset();
      this.#state.timeline.reset();
      this.#restarted();
    } else if (this.#chain.isBroken(header)) {
      this.#chain.forked(header);
      return true;
    }
    peer.giveHeader(value.seq);
    this.add(header, peer);
    return true;
  }

  /** Verifies a header that is not taken yet, such as that of a hello. */
  isGenuine(header: SignedHeader, peer: LivePeer): boolean {
    return this.#isGenuine(header, peer);
  }

  /** Adds a verified header; `from` is who told it. */
  add(header: SignedHeader, from: LivePeer | undefined): void {
    const { window, timeline, now } = this.#state;
    const below = window.below(header.value.seq)?.header;
    if (!window.addHeader(header, now)) return;
    this.#chain.added(header, below);
    timeline.arrived(header.value.timestampMs, now);
    if (header.value.seq === window.head) this.#watchClock(header);
    this.#added(header, from);
  }

  /** The newest headers all come later than anything may be: the source's clock has jumped, or the way from it is longer
   * now. What is late is measured anew then, or nothing would ever be in time. */
  #watchClock({ value }: SignedHeader): void {
    const { timeline, now, setup } = this.#state;
    if (timeline.latenessMs(value.timestampMs, now) <= setup.lagMs) this.#lateHeads = 0;
    else if (++this.#lateHeads >= this.#state.piecesIn(LATE_HEADS_MS)) {
      this.#lateHeads = 0;
      timeline.reset();
      timeline.arrived(value.timestampMs, now);
    }
  }

  /** Passes a header on to a child, once. */
  pass(header: SignedHeader, child: LivePeer, isAnswer: boolean): void {
    if (!child.giveHeader(header.value.seq) && !isAnswer) return;
    this.#state.send(child, { kind: "header", isAnswer, header }, 1, this.#state.setup.lagMs);
  }

  /** Whether the headers of `seq` travel with this stripe. */
  travelsWith(seq: number, stripe: number): boolean {
    const { stripes } = this.#state.setup.layout;
    return (stripe - (seq % stripes) + stripes) % stripes < HEADER_COPIES;
  }

  /** A signed header whose time does not go with its number is a replay by the key's holder, or a broken source. */
  #isTimely(header: SignedHeader): boolean {
    const { window, epoch, setup } = this.#state;
    const { value } = header;
    const head = window.piece(window.head);
    if (!head) return true;
    const aheadMs = value.timestampMs - head.header.value.timestampMs;
    if (value.epoch > epoch) return aheadMs > -STALE_HEAD_MS;
    return value.seq < window.head ? aheadMs <= setup.layout.pieceMs : aheadMs >= -setup.layout.pieceMs;
  }

  /** Whether it is further ahead of our own clock than any clock should be. */
  isOfFuture({ value }: SignedHeader): boolean {
    return !isTimely(value, this.#state.setup.unixMs(this.#state.now), undefined);
  }

  #isGenuine(header: SignedHeader, peer: LivePeer): boolean {
    if (!peer.takeVerification(this.#state.now)) {
      this.#conduct.strike(peer, "too many headers");
      return false;
    }
    if (this.#state.setup.isSigned(header)) return true;
    this.#conduct.ban(peer, "a header that the source did not sign");
    return false;
  }

  /** Another header of a piece that we know: a forgery, or the source signed two. The first one stays. */
  #differs(header: SignedHeader, peer: LivePeer): void {
    if (this.#isGenuine(header, peer)) this.#chain.forked(header);
  }

  /** The source needs nobody to tell it its own pieces: one that it has not made comes from another with its key. */
  #ofAnother(header: SignedHeader, peer: LivePeer): boolean {
    const { window, epoch } = this.#state;
    const { value, bytes } = header;
    const own = value.epoch === epoch ? window.piece(value.seq)?.header.bytes : undefined;
    const isOwn = own !== undefined && equalBytes(own, bytes);
    // What it made before is not all kept, and viewers may still tell of it after a restart.
    const isOld =
      window.head < 0 ||
      value.epoch < epoch ||
      (value.epoch === epoch && own === undefined && value.seq < window.head);
    if (!isOwn && !isOld && this.#isGenuine(header, peer)) this.#chain.forked(header);
    return this.#isHere(peer);
  }

  #isHere(peer: LivePeer): boolean {
    return this.#state.peers.get(peer.connection) === peer;
  }
}
