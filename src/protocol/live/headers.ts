import { equalBytes } from "../../base/bytes.ts";
import { isTimely } from "../../wire/live/trust.ts";
import { Chain } from "./chain.ts";
import type { Conduct } from "./conduct.ts";
import {
  FORK_TOLERANCE_MS,
  HEADER_COPIES,
  MAX_COPIES,
  MAX_LEAP_MS,
  NO_DATA_MS,
  SOURCE_PAUSE_MS,
  STALE_HEAD_MS,
} from "./limits.ts";
import type { SignedHeader, WholeChunk } from "./messages.ts";
import { HEADER_SLOT, type LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** If all newest headers are late for this time, the source's clock or the network delay has changed. */
const CLOCK_JUMP_MS = 1_000;

/** Verifies each header once, stores it, and forwards it. */
export class Headers {
  readonly #state: LiveState;
  readonly #conduct: Conduct;
  readonly #added: (header: SignedHeader, from: LivePeer | undefined) => void;
  readonly #restarted: () => void;
  readonly #chain: Chain;
  #lateHeads = 0;
  /** When the swarm last returned from a version without data. */
  #returnedAt = Number.NEGATIVE_INFINITY;

  /** `added` is called for each new header, `restarted` for a new epoch (before its first header is added). */
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

  /** Handles a HEADER. Returns false if the peer was disconnected for it. */
  take(header: SignedHeader, peer: LivePeer): boolean {
    const { window, epoch } = this.#state;
    const { value, bytes } = header;
    const isOfFuture = this.isOfFuture(header);
    if (isOfFuture) peer.hasFutureHeader = true;
    if (peer.countReceived(value.seq, HEADER_SLOT) > MAX_COPIES) {
      this.#conduct.strike(peer, "too many copies of a header");
      return this.#isConnected(peer);
    }
    if (this.#chain.isKnownFork(header)) return true;
    if (this.#state.isSource) return this.#takeAsSource(header, peer);
    if (value.timestampMs >= this.#state.revokedFromMs) return true;
    if (value.epoch < epoch || (value.epoch === epoch && window.isTooOld(value.seq))) {
      if (this.#mayReturnTo(header)) this.#returnTo(header, peer);
      else this.#conduct.strike(peer, "outdated header");
      return this.#isConnected(peer);
    }
    const known = value.epoch === epoch ? window.piece(value.seq) : undefined;
    if (known && equalBytes(known.header.bytes, bytes)) {
      peer.markHeaderSent(value.seq);
      return true;
    }
    if (this.#isLeap(header)) return true;
    // Headers that would be refused anyway are not verified.
    if (!known && (isOfFuture || !this.#isTimely(header))) {
      this.#conduct.strike(peer, "header with an implausible timestamp");
      return this.#isConnected(peer);
    }
    if (!this.isGenuine(header, peer)) return this.#isConnected(peer);
    if (value.epoch > epoch) this.begin(value.epoch);
    else {
      const rivals = this.#chain.rivals(header);
      if (rivals.length > 0 || window.isGap(value.seq)) {
        this.#chain.forked(header);
        if (!this.#chain.prevails(header, rivals, false)) return true;
        for (const rival of rivals) this.#chain.remove(rival);
      }
    }
    peer.markHeaderSent(value.seq);
    this.add(header, peer);
    return true;
  }

  /** Handles a chunk that does not match the header in the window, or has none. If it matches another version of the
   * piece, it decides between the two: `adopted` if its version is followed from now on, `rejected` if not.
   * Undefined if no known version matches. */
  chunkOfOther(chunk: WholeChunk, from: LivePeer): "adopted" | "rejected" | undefined {
    const header = this.#chain.versionWith(chunk);
    if (!header) return undefined;
    const rivals = this.#chain.rivals(header);
    if (!this.#chain.prevails(header, rivals, this.#chain.isWitness(from))) return "rejected";
    for (const rival of rivals) this.#chain.remove(rival);
    this.add(header, undefined);
    return "adopted";
  }

  /** Continues with another epoch: discards all data of the previous one. */
  begin(epoch: number): void {
    this.#state.epoch = epoch;
    this.#state.window.reset();
    this.#state.timeline.reset();
    this.#state.dataAt = this.#state.now;
    this.#restarted();
  }

  /** Whether a header of an earlier epoch or number may show that the stream goes on there: no chunk has arrived for a
   * while, and the header is newer than all pieces with data, so it is no replay. */
  #mayReturnTo({ value }: SignedHeader): boolean {
    const { now, dataAt, dataTimestampMs } = this.#state;
    return now - dataAt > NO_DATA_MS && value.timestampMs > dataTimestampMs;
  }

  #returnTo(header: SignedHeader, peer: LivePeer): void {
    if (this.isOfFuture(header) || !this.isGenuine(header, peer)) return;
    this.#chain.forked(header);
    this.#returnedAt = this.#state.now;
    this.begin(header.value.epoch);
    this.add(header, peer);
  }

  /** Whether a header leads away from a stream that flows again: after the swarm has returned from headers without data,
   * it ignores later epochs and numbers far ahead for a while. */
  #isLeap({ value }: SignedHeader): boolean {
    const { window, epoch, now, dataAt } = this.#state;
    if (now - this.#returnedAt > FORK_TOLERANCE_MS || now - dataAt > SOURCE_PAUSE_MS) return false;
    return value.epoch > epoch || value.seq > window.head + this.#state.piecesIn(MAX_LEAP_MS);
  }

  /** Adds a verified header; `from` is its sender, or undefined if it was made here. */
  add(header: SignedHeader, from: LivePeer | undefined): void {
    const { window, timeline, now } = this.#state;
    const below = window.below(header.value.seq)?.header;
    if (!window.addHeader(header, now)) return;
    this.#chain.added(header, below);
    timeline.arrived(header.value.timestampMs, now);
    if (header.value.seq === window.head) this.#watchClock(header);
    this.#added(header, from);
    // Headers of this version that came before it.
    const next = this.#chain
      .versionsOf(header.value.seq + 1)
      .find(({ value }) => equalBytes(this.#state.setup.hash(header.bytes), value.previousHash));
    if (!next || !window.piece(header.value.seq)) return;
    const rivals = this.#chain.rivals(next);
    if (!this.#chain.prevails(next, rivals, false)) return;
    for (const rival of rivals) this.#chain.remove(rival);
    this.add(next, undefined);
  }

  /** If all newest headers are later than the lag allows, the source's clock has jumped or the network
   * delay has grown. The timeline is reset then, because otherwise no piece would be on time again. */
  #watchClock({ value }: SignedHeader): void {
    const { timeline, now, setup } = this.#state;
    if (timeline.latenessMs(value.timestampMs, now) <= setup.lagMs) this.#lateHeads = 0;
    else if (++this.#lateHeads >= this.#state.piecesIn(CLOCK_JUMP_MS)) {
      this.#lateHeads = 0;
      timeline.reset();
      timeline.arrived(value.timestampMs, now);
    }
  }

  /** Sends the first header to peers that connected before: they may have no other source for it. */
  passHead(header: SignedHeader): void {
    for (const peer of this.#state.peers.values()) {
      if (peer.knowsHead) continue;
      peer.knowsHead = true;
      this.pass(header, peer, false);
    }
  }

  /** Sends a header to a peer; unless it is an answer, only once. */
  pass(header: SignedHeader, child: LivePeer, isAnswer: boolean): void {
    if (!child.markHeaderSent(header.value.seq) && !isAnswer) return;
    this.#state.send(child, { kind: "header", isAnswer, header }, 1, this.#state.setup.lagMs);
  }

  /** Whether the header of piece `seq` is pushed with this stripe. */
  travelsWith(seq: number, stripe: number): boolean {
    const { stripes } = this.#state.setup.layout;
    return (stripe - (seq % stripes) + stripes) % stripes < HEADER_COPIES;
  }

  /** Whether the timestamp matches the sequence number. If not, the header is a replay, or the source is
   * broken. */
  #isTimely(header: SignedHeader): boolean {
    const { window, epoch, setup } = this.#state;
    const { value } = header;
    const head = window.piece(window.head);
    if (!head) return true;
    const aheadMs = value.timestampMs - head.header.value.timestampMs;
    if (value.epoch > epoch) return aheadMs > -STALE_HEAD_MS;
    return value.seq < window.head ? aheadMs <= setup.layout.pieceMs : aheadMs >= -setup.layout.pieceMs;
  }

  /** Whether the header is further ahead of the local clock than the tolerance for wrong clocks. */
  isOfFuture({ value }: SignedHeader): boolean {
    return !isTimely(value, this.#state.setup.unixMs(this.#state.now), undefined);
  }

  /** Verifies a header without adding it. A wrong signature bans the peer. */
  isGenuine(header: SignedHeader, peer: LivePeer): boolean {
    if (!peer.takeVerification(this.#state.now)) {
      this.#conduct.strike(peer, "header rate limit exceeded");
      return false;
    }
    if (this.#state.setup.isSigned(header)) return true;
    this.#conduct.ban(peer, "invalid header signature");
    return false;
  }

  /** A source makes its own pieces: a genuine header that it did not make is from another source with its
   * key. */
  #takeAsSource(header: SignedHeader, peer: LivePeer): boolean {
    const { window, epoch } = this.#state;
    const { value, bytes } = header;
    const own = value.epoch === epoch ? window.piece(value.seq)?.header.bytes : undefined;
    const isOwn = own !== undefined && equalBytes(own, bytes);
    // Not all of its pieces are kept, and peers may still send those from before a restart.
    const isOld =
      window.head < 0 ||
      value.epoch < epoch ||
      (value.epoch === epoch && own === undefined && value.seq < window.head);
    if (!isOwn && !isOld && this.isGenuine(header, peer)) this.#chain.forked(header);
    return this.#isConnected(peer);
  }

  #isConnected(peer: LivePeer): boolean {
    return this.#state.peers.get(peer.connection) === peer;
  }
}
