import { equalBytes } from "../../base/bytes.ts";
import { comparePieces, isTimely } from "../../wire/live/trust.ts";
import type { Headers } from "./headers.ts";
import { BACKFILL_MS, HELLO_GATHER_MS, HELLO_GATHER_PEERS } from "./limits.ts";
import type { SignedHeader } from "./messages.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** Interval of the requests for heads, until one arrives. */
const HEAD_RETRY_MS = 500;
/** A WIN is at most half a second old: a neighbour may have this many newer pieces by now. */
const HEADS_REQUESTED = 8;

/** Finds the head of the stream: the newest header of several peers, not that of the first one (live
 * protocol: Joining). */
export class Joining {
  readonly #state: LiveState;
  readonly #headers: Headers;
  #firstAt: number | undefined;
  /** When to ask the neighbours for their heads; undefined if they send them without a request. */
  #requestAt: number | undefined;

  constructor(state: LiveState, headers: Headers) {
    this.#state = state;
    this.#headers = headers;
  }

  /** Handles a HELLO. Returns false if the peer was disconnected for it. */
  helloReceived(peer: LivePeer, header: SignedHeader | undefined): boolean {
    peer.hasSentHello = true;
    if (!header) return true;
    if (this.#state.startSeq >= 0 || this.#state.isSource) {
      const { epoch, window } = this.#state;
      // An older header than ours is useless, but not a fault.
      if (header.value.epoch === epoch && header.value.seq <= window.head) return true;
      return header.value.epoch < epoch || this.#headers.take(header, peer);
    }
    return this.headOffered(peer, header);
  }

  /** A peer sends its head while we have none, in HELLO or later. Returns false if the peer was
   * disconnected for it. */
  headOffered(peer: LivePeer, header: SignedHeader): boolean {
    if (!this.#headers.isGenuine(header, peer)) return this.#state.peers.has(peer.connection);
    if (header.value.epoch < this.#state.epoch) return true;
    if (header.value.timestampMs >= this.#state.revokedFromMs) return true;
    if (this.#headers.isOfFuture(header) || (peer.head && !isAfter(header, peer.head))) return true;
    peer.head = header;
    this.#firstAt ??= this.#state.now;
    return true;
  }

  /** Playback cannot start, because no head is known. */
  get isWaiting(): boolean {
    return this.#state.startSeq < 0 && !this.#state.isSource;
  }

  /** The latest time at which the head is chosen; undefined if no peer has sent one. */
  get dueAt(): number | undefined {
    return this.#state.startSeq < 0 && this.#firstAt !== undefined
      ? this.#firstAt + HELLO_GATHER_MS
      : undefined;
  }

  /** Chooses the head when enough peers have sent theirs. Returns true if it did. */
  round(): boolean {
    const { dueAt } = this;
    if (dueAt === undefined) {
      this.#requestHeads();
      return false;
    }
    const offering = [...this.#state.peers.values()].filter(({ head }) => head !== undefined);
    if (offering.length === 0) {
      this.#firstAt = undefined;
      return false;
    }
    if (this.#state.now < dueAt && !this.#isEnough(offering)) return false;
    this.#start(offering);
    return true;
  }

  /** Enough heads, one from the source or a relay (which are always near the head), or no further HELLO is
   * expected. */
  #isEnough(offering: readonly LivePeer[]): boolean {
    const { opening, peers } = this.#state;
    if (offering.length >= HELLO_GATHER_PEERS || offering.some(({ isSourceOrRelay }) => isSourceOrRelay))
      return true;
    return opening === 0 && [...peers.values()].every(({ hasSentHello }) => hasSentHello);
  }

  /** Starts again at the current head. */
  restart(): void {
    this.#state.nextSeq = -1;
    const { window } = this.#state;
    this.#state.startSeq = Math.max(0, window.head + 1 - this.#state.piecesIn(BACKFILL_MS));
  }

  /** Chooses the head anew after a time without a player. The neighbours sent theirs long ago, so they are asked. */
  joinAgain(): void {
    if (this.#state.startSeq < 0) return;
    this.#state.startSeq = -1;
    this.#state.nextSeq = -1;
    this.#firstAt = undefined;
    for (const peer of this.#state.peers.values()) peer.head = undefined;
    this.#requestAt = this.#state.now;
    this.#requestHeads();
  }

  #requestHeads(): void {
    const { now, peers } = this.#state;
    if (!this.isWaiting || this.#requestAt === undefined || now < this.#requestAt) return;
    this.#requestAt = now + HEAD_RETRY_MS;
    const known = [...peers.values()].filter((peer) => peer.headOf(0) >= 0);
    known.sort((a, b) => Number(b.isSourceOrRelay) - Number(a.isSourceOrRelay) || b.headOf(0) - a.headOf(0));
    for (const peer of known.slice(0, HELLO_GATHER_PEERS)) {
      this.#state.send(peer, {
        kind: "headerRequest",
        epoch: peer.window!.epoch,
        firstSeq: peer.headOf(0),
        count: HEADS_REQUESTED,
        step: 1,
        onlyRandomAccess: false,
      });
    }
  }

  #start(offering: readonly LivePeer[]): void {
    const newestMs = Math.max(...offering.map(({ head }) => head!.value.timestampMs));
    const unixMs = this.#state.setup.unixMs(this.#state.now);
    const timely = offering.filter(({ head }) => isTimely(head!.value, unixMs, newestMs));
    const best = timely.reduce((a, b) => (isAfter(b.head!, a.head!) ? b : a)).head!;
    const { window, epoch } = this.#state;
    if (window.head >= 0 && best.value.epoch > epoch) this.#headers.begin(best.value.epoch);
    this.#state.epoch = best.value.epoch;
    this.#headers.add(best, undefined);
    const head = Math.max(window.head, best.value.seq);
    this.#restore();
    this.#state.startSeq = Math.max(0, head + 1 - this.#state.piecesIn(BACKFILL_MS));
  }

  /** Adds the pieces from before a restart that are recent enough, so that they are not requested, and other peers can have them. */
  #restore(): void {
    const { window, epoch, now, setup } = this.#state;
    this.#state.resumeSeq = -1;
    for (const { header, chunks } of setup.restored ?? []) {
      const { seq } = header.value;
      if (header.value.epoch !== epoch || seq > window.head || window.isTooOld(seq)) continue;
      this.#headers.add(header, undefined);
      const piece = window.piece(seq);
      if (!piece || !equalBytes(piece.header.bytes, header.bytes)) continue;
      for (const [stripe, bytes] of chunks.entries()) window.addChunk(piece, stripe, bytes, now);
      this.#state.resumeSeq = seq + 1;
    }
  }
}

function isAfter(a: SignedHeader, b: SignedHeader): boolean {
  return comparePieces(a.value, b.value) > 0;
}
