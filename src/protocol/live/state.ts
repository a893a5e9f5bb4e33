import type { Instant } from "../../base/time.ts";
import { after, instant } from "../../base/time.ts";
import type { LiveFigures, LiveOutput, LivePriority, LiveSetup } from "./contract.ts";
import { LineDelay } from "./line-delay.ts";
import type { LiveMessage } from "./messages.ts";
import { OwnLine } from "./own-line.ts";
import type { LivePeer } from "./peer.ts";
import { Receipts } from "./receipts.ts";
import { StreamShare } from "./stream-share.ts";
import { type LivePiece, PieceWindow } from "./window.ts";

/** {@link Timeline} keeps the fastest arrival of this period and of the one before, so that it follows a
 * clock that drifts. */
const TIMELINE_PERIOD_MS = 60_000;
/** A peer that is late by more than this share of the lag counts as starving; a deep tree uses half of the lag. */
const STARVING_LAG_SHARE = 0.66;
/** The time over which the rate of the stream is measured. */
const RECENT_RATE_MS = 4_000;
/** A peer that connected less than this time ago has not yet sent anything about the stream. */
const NEW_PEER_MS = 1_000;

/** State that the parts of a live swarm share, and the queue of outputs. */
export class LiveState {
  readonly setup: LiveSetup;
  readonly peers = new Map<number, LivePeer>();
  readonly window: PieceWindow;
  readonly timeline = new Timeline();
  readonly line: LineDelay;
  readonly receipts: Receipts;
  readonly share = new StreamShare();
  now: Instant;
  epoch = 0;
  /** The next piece to be played; −1 until a start is chosen. */
  nextSeq = -1;
  /** The first piece to be played. From here on, each piece before `nextSeq` was played or skipped. */
  firstSeq = -1;
  /** The first piece that this engine subscribed to; −1 until it subscribes. */
  startSeq = -1;
  /** The piece after those that were restored; −1 if there are none, or playback has continued there. */
  resumeSeq = -1;
  /** How much of the stream before the head is fetched when playback starts, in ms; see `history` of {@link LiveInput}. */
  historyMs = 0;
  /** Until then, nothing is played, and pieces before `historyEnd` are requested although they are late. */
  historyUntil = Number.NEGATIVE_INFINITY;
  historyEnd = -1;
  /** True if a piece has been played since the start was chosen. */
  hasPlayed = false;
  /** When the newest header arrived. */
  headAt: Instant;
  /** Number of connections being opened. */
  opening = 0;
  isStopped = false;
  /** The upload that this peer offers now, in bytes per second. */
  offeredBytesPerSecond: number;
  readonly ownLine = new OwnLine();
  /** True while a viewer has no player: it keeps its connections, but receives and forwards nothing. */
  isIdle = false;
  /** True if a peer has connected to this engine, which proves that this engine is reachable. */
  hasAcceptedPeer = false;
  /** Timestamp of the STAT in which the source declares that the stream has ended permanently. */
  endedAtMs: number | undefined;
  /** When the last verified chunk arrived, and the newest timestamp of a piece with one. */
  dataAt: Instant;
  dataTimestampMs = -1;
  /** Time at which this engine last saw two versions of the stream. For a short time afterwards, it does not ban peers
   * that send the other version. */
  forkedAt = Number.NEGATIVE_INFINITY;
  /** From this time of the stream on, nothing that its key signs is valid: a successor record revokes it. */
  revokedFromMs = Number.POSITIVE_INFINITY;
  receivedBytes = 0;
  duplicateBytes = 0;
  skippedPieces = 0;
  #outputs: LiveOutput[] = [];
  #taken = 0;

  constructor(setup: LiveSetup, now: Instant) {
    this.setup = setup;
    this.now = now;
    this.headAt = this.dataAt = now;
    this.offeredBytesPerSecond = setup.about.uploadBytesPerSecond;
    const { stripes, pieceMs, bytesPerSecond } = setup.layout;
    this.receipts = new Receipts(bytesPerSecond);
    this.line = new LineDelay(bytesPerSecond, pieceMs, setup.lagMs);
    this.window = new PieceWindow(stripes, Math.ceil(setup.keepMs / pieceMs));
  }

  get isSource(): boolean {
    return this.setup.about.role === "source";
  }

  /** True if no further pieces are expected: the newest piece has the flag *end*, or a STAT declares the end. */
  get isEnding(): boolean {
    const head = this.window.piece(this.window.head)?.header.value;
    // Without a piece, an old STAT cannot be distinguished from the last one.
    return head !== undefined && (head.isEnd || head.timestampMs <= (this.endedAtMs ?? -1));
  }

  /** True if the stream has ended and this engine has played all of it. */
  get hasEnded(): boolean {
    return this.isEnding && (this.isSource || this.nextSeq > this.window.head);
  }

  /** The number of pieces in `ms`, rounded up. */
  piecesIn(ms: number): number {
    return Math.ceil(ms / this.setup.layout.pieceMs);
  }

  get isFetchingHistory(): boolean {
    return this.historyUntil > Number.NEGATIVE_INFINITY;
  }

  /** The time until a piece is skipped, in ms. */
  remainingMs({ seq, header }: LivePiece): number {
    const { setup, timeline, now, historyUntil, historyEnd } = this;
    const liveMs = setup.lagMs - timeline.latenessMs(header.value.timestampMs, now);
    return seq < historyEnd ? Math.max(liveMs, historyUntil - now) : liveMs;
  }

  /** How long chunks wait on our own line at present, in ms. */
  get lineDelayMs(): number {
    return this.hasPlayed ? this.line.delayMs(this.now) : 0;
  }

  /** Bytes per second of one stripe. */
  get stripeRate(): number {
    return this.setup.layout.bytesPerSecond / this.setup.layout.stripes;
  }

  /** The upload for other peers, in bytes per second: the offer, or what the line has carried. */
  get uploadBytesPerSecond(): number {
    const carried = this.ownLine.carriedBytesPerSecond(this.stripeRate, this.now);
    return Math.min(this.offeredBytesPerSecond, carried);
  }

  /** Bytes per second of one stripe in the newest pieces: a stream can have much less than its transport file says. */
  get recentStripeRate(): number {
    const { stripes, pieceMs } = this.setup.layout;
    const most = this.piecesIn(RECENT_RATE_MS);
    let bytes = 0;
    let pieces = 0;
    for (let piece = this.window.piece(this.window.head); piece && pieces < most; pieces++) {
      bytes += piece.header.value.pieceBytes;
      piece = this.window.piece(piece.seq - 1);
    }
    return pieces === 0 ? this.stripeRate : Math.max(1, (1_000 * bytes) / (pieces * pieceMs * stripes));
  }

  /** Typical size of a chunk in bytes. */
  get chunkBytes(): number {
    return (this.stripeRate * this.setup.layout.pieceMs) / 1_000;
  }

  /** Returns the figures that `stat` and `livepos` show at `now`. */
  figures(now: Instant): LiveFigures {
    const { window, timeline, nextSeq, startSeq } = this;
    const isKnown = window.head >= 0;
    const firstSeq = isKnown ? Math.max(window.oldest, startSeq) : undefined;
    const first = firstSeq === undefined ? undefined : window.piece(firstSeq);
    const last = window.piece(window.head);
    const position = nextSeq < 0 ? undefined : nextSeq;
    const played =
      position === undefined ? undefined : (window.piece(position) ?? window.piece(position - 1));
    let bufferedPieces = 0;
    while (position !== undefined && window.isWhole(position + bufferedPieces)) bufferedPieces++;
    const peers = [...this.peers.values()];
    const heard = peers.flatMap(({ openedAt, heardAt }) => (now - openedAt > NEW_PEER_MS ? heardAt : []));
    return {
      peers: peers.length,
      parents: peers.filter(({ parentOf }) => parentOf !== 0).length,
      children: peers.filter(({ childOf }) => childOf !== 0).length,
      firstSeq,
      lastSeq: isKnown ? window.head : undefined,
      firstTsMs: first?.header.value.timestampMs,
      lastTsMs: last?.header.value.timestampMs,
      positionSeq: position,
      bufferedPieces,
      lagMs: played ? Math.max(0, timeline.latenessMs(played.header.value.timestampMs, now)) : 0,
      receivedBytes: this.receivedBytes,
      duplicateBytes: this.duplicateBytes,
      skippedPieces: this.skippedPieces,
      hasEnded: this.hasEnded,
      starvingPeers: peers.filter(
        (peer) => peer.window !== undefined && peer.window.lagMs > STARVING_LAG_SHARE * this.setup.lagMs,
      ).length,
      newest: last?.header.value,
      heardAt: heard.length === 0 ? undefined : instant(Math.max(...heard)),
    };
  }

  /** Counts a chunk that is sent to a peer. */
  chunkSent(peer: LivePeer, { seq, header, chunks }: LivePiece, stripe: number): void {
    const { stripes } = this.setup.layout;
    peer.chunkSent(seq, stripe, chunks[stripe]!.length);
    this.share.sent(peer, header.value.spanMs, stripes, this.now);
  }

  emit(output: LiveOutput): void {
    this.#outputs.push(output);
  }

  /** Queues a message for a peer. The driver drops the message after `usefulMs`, or never if that is absent. */
  send(peer: LivePeer, message: LiveMessage, priority: LivePriority = 0, usefulMs?: number): void {
    const expiresAt =
      usefulMs === undefined ? instant(Number.POSITIVE_INFINITY) : after(this.now, Math.max(0, usefulMs));
    this.#outputs.push({ kind: "send", connection: peer.connection, message, priority, expiresAt });
  }

  poll(): LiveOutput | undefined {
    const output = this.#outputs[this.#taken++];
    if (output === undefined) {
      this.#taken = 0;
      if (this.#outputs.length > 0) this.#outputs = [];
    }
    return output;
  }
}

/** Estimates lateness without trusting any clock: the fastest header of the last one to two minutes counts
 * as on time, and all others are late relative to it. */
class Timeline {
  #best = Number.POSITIVE_INFINITY;
  #lastBest = Number.POSITIVE_INFINITY;
  #since = 0;

  /** Records the arrival of a new verified header with timestamp `tsMs`. */
  arrived(tsMs: number, now: Instant): void {
    if (now - this.#since >= TIMELINE_PERIOD_MS) {
      this.#lastBest = this.#best;
      this.#best = Number.POSITIVE_INFINITY;
      this.#since = now;
    }
    this.#best = Math.min(this.#best, now - tsMs);
  }

  /** Returns by how many ms a piece with timestamp `tsMs` that arrives at `now` is later than the fastest header. */
  latenessMs(tsMs: number, now: Instant): number {
    return now - tsMs - Math.min(this.#best, this.#lastBest);
  }

  /** Resets the estimate for another source or epoch. */
  reset(): void {
    this.#best = Number.POSITIVE_INFINITY;
    this.#lastBest = Number.POSITIVE_INFINITY;
  }
}
