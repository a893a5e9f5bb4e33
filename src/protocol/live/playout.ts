import type { HeaderRequests } from "./header-requests.ts";
import { BACKFILL_MS, MAX_HEADERS_ANSWERED, RESTART_MS, START_BEHIND_MS } from "./limits.ts";
import type { LiveState } from "./state.ts";
import type { LivePiece } from "./window.ts";

/** The headers that show possible starts are awaited for this time. */
const HEADERS_WAIT_MS = 250;
/** The same for a start with history: without it, the start would be that of other players. */
const HISTORY_HEADERS_WAIT_MS = 1_500;
/** After this time a later start may replace the chosen one. An earlier change would leave players less
 * media to start with. */
const LATER_START_MS = 500;
/** The pieces before the start are awaited for this time: viewers of shared HLS have three segments in their buffers. */
const HISTORY_WAIT_MS = 3_000;
/** The first piece has at least this time, and some round trips, before its deadline. */
const START_MARGIN_MS = 300;

/** A crowd: at least this number of neighbours, of which more than this share are new. If a third of all
 * peers leave each minute, one in forty is new. */
const CROWD_PEERS = 6;
const CROWD_SHARE = 0.25;
const NEW_NEIGHBOUR_MS = 3_000;

/** Delivers complete pieces in order, and skips pieces that are too late. */
export class Playout {
  readonly #state: LiveState;
  readonly #headerRequests: HeaderRequests;
  #startedAt: number;

  constructor(state: LiveState, headerRequests: HeaderRequests) {
    this.#state = state;
    this.#headerRequests = headerRequests;
    this.#startedAt = state.now;
  }

  /** A start was chosen, or is to be chosen again. */
  started(): void {
    this.#startedAt = this.#state.now;
    this.#state.hasPlayed = false;
  }

  /** The head was chosen: the first start, or the one after a time without a player. */
  joined(): void {
    this.started();
    const { historyMs, now } = this.#state;
    this.#state.historyUntil = historyMs > 0 ? now + HISTORY_WAIT_MS : Number.NEGATIVE_INFINITY;
    this.#state.historyEnd = -1;
  }

  /** Whether nothing was played for so long that another start is better. */
  get isStuck(): boolean {
    const { nextSeq, startSeq, window, now } = this.#state;
    if (startSeq < 0 || this.#state.isFetchingHistory) return false;
    if (nextSeq >= 0 && nextSeq < window.oldest) return true;
    return (
      !this.#state.hasPlayed &&
      now - this.#startedAt > RESTART_MS &&
      nextSeq >= 0 &&
      window.head - nextSeq > this.#state.piecesIn(this.#state.setup.lagMs)
    );
  }

  /** Delivers complete pieces and skips late ones. */
  round(): void {
    if (this.#state.nextSeq < 0) this.#chooseStart();
    if (this.#awaitsHistory()) return;
    if (!this.#state.hasPlayed) this.#tryLaterStart();
    while (this.#state.nextSeq >= 0 && this.#step());
  }

  /** The first piece at which playback may start: older ones would miss their deadline. */
  get earliestSeq(): number {
    const { setup, window, peers, historyMs } = this.#state;
    if (this.#state.isFetchingHistory) return Math.max(0, window.head + 1 - this.#state.piecesIn(historyMs));
    const rttMs = Math.min(1_000, ...[...peers.values()].map((peer) => peer.rttMs));
    const quietMs = Math.max(BACKFILL_MS, setup.lagMs - START_MARGIN_MS - 5 * rttMs);
    // In a crowd, extra pulls of newcomers would take upload from the peers that play.
    const mostMs = this.#isCrowd ? BACKFILL_MS : quietMs;
    return Math.max(0, window.head + 1 - Math.min(this.#state.piecesIn(mostMs), MAX_HEADERS_ANSWERED));
  }

  /** Whether many neighbours are new: they hold little media. */
  get #isCrowd(): boolean {
    const { peers } = this.#state;
    let newPeers = 0;
    let counted = 0;
    for (const { window, hasSentHello, isSourceOrRelay } of peers.values()) {
      if (!hasSentHello || isSourceOrRelay) continue;
      counted++;
      if (!window || window.baseSeq - window.oldestSeq < this.#state.piecesIn(NEW_NEIGHBOUR_MS)) newPeers++;
    }
    return counted >= CROWD_PEERS && newPeers > CROWD_SHARE * counted;
  }

  /** Chooses the newest random access piece at least 0.6 s behind the head, or else the newest one. */
  #chooseStart(): void {
    const { window, startSeq, now } = this.#state;
    if (startSeq < 0 || window.head < 0) return;
    const { resumeSeq } = this.#state;
    this.#state.resumeSeq = -1;
    if (resumeSeq >= this.earliestSeq) {
      this.#startAt(resumeSeq);
      return;
    }
    const newest = window.head - this.#state.piecesIn(START_BEHIND_MS);
    const oldest = Math.max(this.earliestSeq, window.oldest);
    let isKnown = true;
    let chosen = -1;
    const { isFetchingHistory: isWithHistory } = this.#state;
    for (let seq = newest; seq >= oldest && (isWithHistory || chosen < 0); seq--) {
      const piece = window.piece(seq);
      if (isWithHistory ? this.#beginsSegment(seq) : isRandomAccess(piece)) chosen = seq;
      else if (!piece && !window.isGap(seq)) isKnown = false;
    }
    if (chosen < 0 && this.earliestSeq < oldest) isKnown = !this.#isMoreAvailable(oldest);
    // A better start may be in a header that is in transit.
    const waitMs = isWithHistory ? HISTORY_HEADERS_WAIT_MS : HEADERS_WAIT_MS;
    if (!isKnown && now - this.#startedAt < waitMs) return;
    if (isWithHistory && chosen < 0) {
      this.#endHistory();
      this.#chooseStart();
      return;
    }
    for (let seq = Math.max(newest + 1, oldest); seq <= window.head && chosen < 0; seq++) {
      if (isRandomAccess(window.piece(seq))) chosen = seq;
    }
    if (isWithHistory) this.#state.historyEnd = window.head + 1;
    this.#startAt(chosen);
  }

  #endHistory(): void {
    this.#state.historyUntil = Number.NEGATIVE_INFINITY;
  }

  #beginsSegment(seq: number): boolean {
    const piece = this.#state.window.piece(seq);
    return isRandomAccess(piece) && piece.header.value.isSegmentStart;
  }

  /** Whether pieces before the head are awaited. After {@link HISTORY_WAIT_MS}, playback starts behind the last one that is missing. */
  #awaitsHistory(): boolean {
    const { window, nextSeq, now, historyUntil, historyEnd } = this.#state;
    if (nextSeq < 0 || !this.#state.isFetchingHistory) return false;
    let seq = historyEnd - 1;
    while (seq >= nextSeq && window.isWhole(seq)) seq--;
    const isComplete = seq < nextSeq;
    if (!isComplete && now < historyUntil) return true;
    this.#endHistory();
    if (isComplete) return false;
    do seq++;
    while (seq < historyEnd && !this.#beginsSegment(seq));
    this.#startAt(seq < historyEnd ? seq : -1);
    if (seq === historyEnd) this.#chooseStart();
    return false;
  }

  #startAt(seq: number): void {
    this.#state.nextSeq = seq;
    this.#state.firstSeq = seq;
  }

  /** If a later random access piece is complete before the chosen start, starts there. */
  #tryLaterStart(): void {
    const { window, nextSeq, now } = this.#state;
    if (nextSeq < 0 || now - this.#startedAt < LATER_START_MS || window.isWhole(nextSeq)) return;
    for (let seq = nextSeq + 1; seq <= window.head; seq++) {
      const piece = window.piece(seq);
      if (!isRandomAccess(piece) || piece.mask !== window.fullMask) continue;
      this.#startAt(seq);
      return;
    }
  }

  /** Whether a peer has pieces from before `seq`, or has not sent its WIN yet. */
  #isMoreAvailable(seq: number): boolean {
    const { peers, epoch } = this.#state;
    return [...peers.values()].some(({ head, window }) =>
      window ? window.epoch === epoch && window.oldestSeq < seq : head !== undefined,
    );
  }

  #step(): boolean {
    const { window, nextSeq, setup, timeline, now } = this.#state;
    const made = window.nextMade(nextSeq);
    if (made > nextSeq) {
      this.#state.nextSeq = made;
      return true;
    }
    // Older than all kept pieces: a new start is chosen, instead of skipping thousands of pieces one by one.
    if (nextSeq < window.oldest) return false;
    const piece = window.piece(nextSeq);
    if (piece?.mask === window.fullMask) {
      const { header, chunks, completedAt } = piece;
      this.#state.emit({ kind: "piece", header, chunks, completedAt });
      this.#state.hasPlayed = true;
      this.#state.nextSeq++;
      return true;
    }
    // The lateness of a piece without a header follows from the next known one.
    const known = piece ?? window.above(nextSeq);
    if (!known) return false;
    const tsMs = known.header.value.timestampMs - (known.seq - nextSeq) * setup.layout.pieceMs;
    const gap = piece ? "waiting" : this.#headerRequests.gapState(nextSeq);
    if (gap === "requesting") return false;
    if (gap === "waiting" && timeline.latenessMs(tsMs, now) <= setup.lagMs) return false;
    let missingChunks = 0;
    for (let i = 0; i < window.stripes; i++) if (((piece?.mask ?? 0) >>> i) % 2 === 0) missingChunks++;
    this.#state.emit({ kind: "skip", seq: nextSeq, missingChunks });
    this.#state.skippedPieces++;
    this.#state.nextSeq++;
    return true;
  }
}

function isRandomAccess(piece: LivePiece | undefined): piece is LivePiece {
  return piece?.header.value.randomAccessOffset !== undefined;
}
