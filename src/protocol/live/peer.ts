import { addressScope, addressText, type PeerAddress } from "../../base/address.ts";
import { networkOf } from "../../base/network.ts";
import { TokenBucket } from "../../base/rate.ts";
import type { Instant } from "../../base/time.ts";
import type { LiveCandidate } from "../../wire/live/endpoint.ts";
import { countStripes } from "../../wire/live/message-kind.ts";
import type { StripePath } from "../../wire/live/paths.ts";
import type { ChunkName } from "../../wire/live/request.ts";
import { type LiveWindow, windowHas } from "../../wire/live/window.ts";
import type { LiveConnectionId } from "./contract.ts";
import {
  ACTIVE_PEER_SILENT_MS,
  CARRY_MS,
  HEADER_BURST,
  HEADERS_PER_SECOND,
  IDLE_PEER_SILENT_MS,
  MAX_BROKEN_PROMISES,
  MAX_NAK_AVOID_MS,
  NAK_AVOID_MS,
  PROOF_ANSWERS,
  PROOF_CHUNKS,
  REQUEST_BURST,
  REQUESTS_PER_SECOND,
  STREAM_BURST_MS,
  STREAM_SHARE,
  VERIFY_BURST,
  VERIFY_PER_SECOND,
} from "./limits.ts";
import { type LiveAbout, NO_DEPTH, type SignedHeader } from "./messages.ts";

/** Number of pieces for which sent and received chunks are remembered: more than a WIN covers. */
const TRACKED_PIECES = 64;
const MAX_ASKED = 512; // Twice as many as all pulls.
/** What a chunk in time makes up for, in broken promises. */
const KEPT_PROMISE = 0.1;
/** The slot of a piece's header, next to the slots of its stripes. */
export const HEADER_SLOT = 16;

/** State of one connected peer. */
export class LivePeer {
  readonly connection: LiveConnectionId;
  readonly address: PeerAddress;
  /** The address as a map key. */
  readonly key: string;
  /** Whether other peers can connect to the address. */
  readonly isReachable: boolean;
  about: LiveAbout;
  readonly openedAt: Instant;
  /** The /24 (IPv4) or /64 (IPv6) of the address. */
  readonly network: string;
  /** The address is loopback or private. */
  readonly isLocal: boolean;
  rttMs: number;
  hasSentHello = false;
  /** Has received a head, in HELLO or later. */
  knowsHead = false;
  /** The newest header that it sent before we had a head. */
  head: SignedHeader | undefined;
  window: Readonly<LiveWindow> | undefined;
  /** Our newest piece when this window arrived. */
  headAtWindow = -1;
  readonly paths: (StripePath | undefined)[];
  /** When each path last changed. */
  readonly pathsAt: Float64Array;
  /** Bit sets of the stripes that it sends us or was asked for, and of those that we send it. */
  parentOf = 0;
  childOf = 0;
  /** Until then it is not asked as a parent. */
  avoidUntil = 0;
  /** How often it failed as a parent before it sent any chunk. */
  failures = 0;
  pullAvoidUntil = 0;
  /** Consecutive NAKs because of too little upload. */
  #refusedPulls = 0;
  /** Until then it is not asked for headers. */
  headersAvoidUntil = 0;
  /** Headers that it may still request. */
  readonly headerAllowance = new TokenBucket(HEADERS_PER_SECOND, HEADER_BURST);
  /** Chunks that it may still request. */
  readonly requestAllowance = new TokenBucket(REQUESTS_PER_SECOND, REQUEST_BURST);
  /** What it may still receive of the stream, in ms of its playing time. */
  readonly streamAllowance = new TokenBucket(1_000 * STREAM_SHARE, STREAM_BURST_MS);
  /** When it last sent a pulled chunk. */
  answeredAt = Number.NEGATIVE_INFINITY;
  /** After a refusal: when it may be asked again. */
  retryAt = 0;
  /** Chunks from it that were new and on time, and when the last one arrived. */
  usefulChunks = 0;
  usefulAt = Number.NEGATIVE_INFINITY;
  /** Chunks that it claimed to have and did not send in time, less those that it has made up for. */
  brokenPromises = 0;
  /** Bytes of chunks sent to it that no WIN has confirmed; when a WIN last confirmed any, or the connection was opened. */
  unconfirmedBytes = 0;
  confirmedAt: Instant;
  hasConfirmed = false;
  /** A chunk that was sent to it, and the bytes sent since. */
  #sample: ChunkName | undefined;
  #sinceSample = 0;
  #answers = 0;
  #carried = Number.POSITIVE_INFINITY;
  #carriedAt = Number.NEGATIVE_INFINITY;
  /** When it was last told, by UNSUB, that a stripe is not wanted. */
  unsubscribedAt = Number.NEGATIVE_INFINITY;
  pulls = 0;
  /** When others were last seen to receive through it what we send it, and until when it counts as feeding
   * no peer. */
  provedAt = Number.NEGATIVE_INFINITY;
  unproductiveUntil = 0;
  /** When another child last took a place of this one. */
  displacedAt = Number.NEGATIVE_INFINITY;
  /** No peer was seen to receive anything through it, although many could. */
  isUnproved = false;
  /** It sent a header from the future: the source's clock or ours may be wrong, so the consequences are not
   * its fault. */
  hasFutureHeader = false;
  strikes = 0;
  strikesAt: number;
  /** Bit set of the stripes whose current path was not sent to it. */
  unsentPaths = 0xffff;
  pingedAt = 0;
  heardAt: number;
  verifications = VERIFY_BURST;
  readonly #sent = new ChunkMarks();
  readonly #asked = new Set<number>();
  readonly #deferred = new ChunkMarks();
  readonly #receivedSeq = new Float64Array(TRACKED_PIECES).fill(-1);
  /** Received once, and received twice: a bit for each stripe, and one for the header. */
  readonly #received = new Int32Array(TRACKED_PIECES);
  readonly #receivedTwice = new Int32Array(TRACKED_PIECES);

  /** Live data for this peer last waited at this time, while its connection took this many bytes a second. */
  backlogAt = Number.NEGATIVE_INFINITY;
  backlogRate = 0;

  constructor(
    connection: LiveConnectionId,
    peer: Pick<LivePeer, "address" | "isReachable" | "about" | "rttMs">,
    stripes: number,
    now: Instant,
  ) {
    this.connection = connection;
    this.address = peer.address;
    this.key = addressText(peer.address);
    this.isReachable = peer.isReachable;
    this.about = peer.about;
    this.rttMs = peer.rttMs;
    this.openedAt = now;
    this.confirmedAt = now;
    this.heardAt = now;
    this.strikesAt = now;
    this.network = networkOf(peer.address.host);
    this.isLocal = addressScope(peer.address.host) !== "global";
    this.pathsAt = new Float64Array(stripes);
    this.paths = new Array<StripePath | undefined>(stripes).fill(undefined);
  }

  /** The source or a relay: always near the head, and reconnected to early. */
  get isSourceOrRelay(): boolean {
    return this.about.role !== "viewer";
  }

  /** Whether the peer has been silent for longer than the interval of its WINs explains. */
  isSilent(now: number): boolean {
    return (
      now - this.heardAt >
      ((this.parentOf | this.childOf) !== 0 ? ACTIVE_PEER_SILENT_MS : IDLE_PEER_SILENT_MS)
    );
  }

  /** Applies a PATHS message. */
  updatePaths(paths: readonly StripePath[], now: number): void {
    for (const path of paths) {
      if (path.stripe >= this.paths.length) continue;
      this.paths[path.stripe] = path;
      this.pathsAt[path.stripe] = now;
    }
  }

  /** Whether its last WIN shows the chunk. */
  has(seq: number, stripe: number): boolean {
    return this.window !== undefined && windowHas(this.window, seq, stripe);
  }

  /** The newest piece of which it has this stripe, by its last WIN; −1 without a WIN. */
  headOf(stripe: number): number {
    if (!this.window) return -1;
    const { baseSeq, runs, beyond } = this.window;
    const bits = beyond[stripe]!;
    return baseSeq + runs[stripe]! - 1 + (bits === 0 ? 0 : 33 - Math.clz32(bits));
  }

  depthOf(stripe: number): number {
    return this.about.role === "source" ? 0 : (this.paths[stripe]?.depth ?? NO_DEPTH);
  }

  /** It has sent a chunk that was new and on time. */
  delivered(now: Instant): void {
    this.usefulChunks++;
    this.usefulAt = now;
    this.#keptPromise();
  }

  /** A chunk from it arrived late, or was not needed any more: it is slow, not false. */
  deliveredLate(): void {
    this.brokenPromises = Math.max(0, this.brokenPromises - 1);
  }

  /** A chunk that it claimed to have did not arrive in time. */
  brokePromise(): void {
    this.brokenPromises = Math.min(this.brokenPromises + 1, 2 * MAX_BROKEN_PROMISES);
  }

  /** Whether its claims have been true so far. */
  get isHonest(): boolean {
    return this.brokenPromises < MAX_BROKEN_PROMISES;
  }

  /** Whether it has proved itself as a parent: the claims of other peers cost nothing. */
  get isProven(): boolean {
    return this.usefulChunks >= PROOF_CHUNKS && this.isHonest;
  }

  /** Whether it is expected to answer pulls. */
  get isTrusted(): boolean {
    return (this.isProven || this.#answers >= PROOF_ANSWERS) && this.isHonest;
  }

  #keptPromise(): void {
    this.brokenPromises = Math.max(0, this.brokenPromises - KEPT_PROMISE);
  }

  /** It has sent a chunk that was requested. */
  answered(now: Instant): void {
    this.answeredAt = now;
    this.#answers++;
    this.#refusedPulls = 0;
    this.#keptPromise();
  }

  /** It has refused a pull because of too little upload: it is not asked for a while, longer each time. */
  refusedPull(now: Instant): void {
    const waitMs = Math.min(MAX_NAK_AVOID_MS, NAK_AVOID_MS * 2 ** Math.min(this.#refusedPulls++, 10));
    this.pullAvoidUntil = Math.max(this.pullAvoidUntil, now + waitMs);
  }

  /** The number of stripes that it gets from us. */
  get childCount(): number {
    return countStripes(this.childOf);
  }

  /** Its connection did not carry more than `stripes` at `now`. */
  limitStripes(stripes: number, now: Instant): void {
    this.#carried = stripes;
    this.#carriedAt = now;
  }

  /** The number of stripes that may be sent to it: what its connection carried, and one more for each time without a backlog. */
  carriedStripes(now: Instant): number {
    return this.#carried === Number.POSITIVE_INFINITY
      ? this.#carried
      : this.#carried + Math.floor((now - this.#carriedAt) / CARRY_MS);
  }

  /** Marks a chunk as sent to the peer. Returns false if it was marked already. */
  markSent(seq: number, stripe: number): boolean {
    return this.#sent.mark(seq, 1 << stripe);
  }

  /** Marks a chunk as requested from the peer. */
  markAsked(seq: number, stripe: number): void {
    this.#asked.add(16 * seq + stripe);
    if (this.#asked.size > MAX_ASKED) this.#asked.delete(this.#asked.values().next().value!);
  }

  /** Whether the chunk was requested from the peer. */
  wasAsked(seq: number, stripe: number): boolean {
    return this.#asked.has(16 * seq + stripe);
  }

  /** Marks a header as sent to the peer. Returns false if it was marked already. */
  markHeaderSent(seq: number): boolean {
    return this.#sent.mark(seq, 1 << HEADER_SLOT);
  }

  /** Marks a chunk that was refused with "ask others". Returns false if it was marked already. */
  markDeferred(seq: number, stripe: number): boolean {
    return this.#deferred.mark(seq, 1 << stripe);
  }

  /** Counts a received chunk (`slot` is the stripe) or header (`HEADER_SLOT`). Returns how often it has
   * been received, at most 3; 1 if the piece is no longer tracked. */
  countReceived(seq: number, slot: number): number {
    const at = seq % TRACKED_PIECES;
    if (seq < this.#receivedSeq[at]!) return 1;
    if (seq > this.#receivedSeq[at]!) {
      this.#receivedSeq[at] = seq;
      this.#received[at] = 0;
      this.#receivedTwice[at] = 0;
    }
    const bit = 1 << slot;
    const times = (this.#received[at]! & bit) === 0 ? 1 : (this.#receivedTwice[at]! & bit) === 0 ? 2 : 3;
    this.#received[at]! |= bit;
    if (times === 2) this.#receivedTwice[at]! |= bit;
    return times;
  }

  /** Takes one verification from the peer's allowance, which refills with time. Returns false if none is
   * left. */
  takeVerification(now: Instant): boolean {
    const { strikesAt } = this;
    this.forgive(now);
    this.verifications = Math.min(
      VERIFY_BURST,
      this.verifications + ((now - strikesAt) * VERIFY_PER_SECOND) / 1_000,
    );
    if (this.verifications < 1) return false;
    this.verifications--;
    return true;
  }

  /** Forgets what was sent of a piece, because another version takes its place. */
  forgetSent(seq: number): void {
    this.#sent.forget(seq);
  }

  /** Counts a chunk that is sent to it. */
  chunkSent(seq: number, stripe: number, bytes: number): void {
    this.unconfirmedBytes += bytes;
    if (this.#sample === undefined) {
      this.#sample = { seq, stripe };
      this.#sinceSample = 0;
    } else this.#sinceSample += bytes;
  }

  /** Takes a WIN. If it shows a chunk that was sent to the peer, or is past it, the WIN confirms all that was sent before. */
  updateWindow(window: LiveWindow, head: number, now: Instant): void {
    this.window = window;
    this.headAtWindow = head;
    if (!this.#sample) return;
    const { seq, stripe } = this.#sample;
    if (seq >= window.baseSeq && !windowHas(window, seq, stripe)) return;
    this.hasConfirmed = true;
    this.confirmedAt = now;
    this.unconfirmedBytes = this.#sinceSample;
    this.#sample = undefined;
  }

  /** Discards what belongs to the previous epoch. */
  restarted(): void {
    this.#sample = undefined;
    this.unconfirmedBytes = 0;
    this.window = undefined;
    this.#sent.clear();
    this.#asked.clear();
    this.#deferred.clear();
    this.#receivedSeq.fill(-1);
  }

  /** Forgives one strike a second. */
  forgive(now: Instant): void {
    this.strikes = Math.max(0, this.strikes - (now - this.strikesAt) / 1_000);
    this.strikesAt = now;
  }
}

/** A bit set for each of the newest pieces. */
class ChunkMarks {
  readonly #seqs = new Float64Array(TRACKED_PIECES).fill(-1);
  readonly #bits = new Int32Array(TRACKED_PIECES);

  /** Sets a bit. Returns false if it was set already. Pieces that are no longer tracked are never set. */
  mark(seq: number, bit: number): boolean {
    const at = seq % TRACKED_PIECES;
    if (this.#seqs[at] !== seq) {
      if (seq < this.#seqs[at]!) return true;
      this.#seqs[at] = seq;
      this.#bits[at] = 0;
    }
    if ((this.#bits[at]! & bit) !== 0) return false;
    this.#bits[at]! |= bit;
    return true;
  }

  forget(seq: number): void {
    const at = seq % TRACKED_PIECES;
    if (this.#seqs[at] === seq) this.#bits[at] = 0;
  }

  clear(): void {
    this.#seqs.fill(-1);
    this.#bits.fill(0);
  }
}

/** The peer as a candidate for SUBNO and BYE, with the figures of its last WIN. */
export function candidateOf({ address, window }: LivePeer): LiveCandidate {
  return { address, freeSlots: window?.freeSlots ?? 0, lagMs: window?.lagMs ?? 0 };
}
