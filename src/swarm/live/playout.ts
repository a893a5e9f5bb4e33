import type { Asking } from "./asking.ts";
import { MAX_HEADERS_ANSWERED, REHOOK_MS, START_BEHIND_MS } from "./limits.ts";
import type { LiveState } from "./state.ts";

/** The headers that tell where to begin are waited for so long. */
const HEADERS_MS = 250;
/** The start that was chosen first has so long before a later one may take its place: with more behind it, players begin better. */
const FIRST_CHOICE_MS = 500;
/** What is begun with has at least so long until it is late, and some round trips. */
const START_MARGIN_MS = 300;

/** A crowd: of so many neighbours more than this part have come so lately. One in forty has, where a third leaves each minute. */
const CROWD_PEERS = 6;
const CROWD_PART = 0.25;
const YOUNG_NEIGHBOUR_MS = 3_000;

/** The way out: whole pieces in order, and what is too late is skipped. */
export class Playout {
  readonly #state: LiveState;
  readonly #asking: Asking;
  #startedAt: number;

  constructor(state: LiveState, asking: Asking) {
    this.#state = state;
    this.#asking = asking;
    this.#startedAt = state.now;
  }

  /** A start was chosen, or is to be chosen again. */
  began(): void {
    this.#startedAt = this.#state.now;
    this.#state.hasPlayed = false;
  }

  /** Nothing has come out for so long that another start is better. */
  get isStuck(): boolean {
    const { nextSeq, startSeq, window, now } = this.#state;
    if (startSeq < 0) return false;
    if (nextSeq >= 0 && nextSeq < window.oldest) return true;
    return (
      !this.#state.hasPlayed &&
      now - this.#startedAt > REHOOK_MS &&
      nextSeq >= 0 &&
      window.head - nextSeq > this.#state.piecesIn(this.#state.setup.lagMs)
    );
  }

  /** Gives out what is whole, and skips what is too late. */
  round(): void {
    if (this.#state.nextSeq < 0) this.#choose();
    if (!this.#state.hasPlayed) this.#beginLater();
    while (this.#state.nextSeq >= 0 && this.#step());
  }

  /** The first piece that may be begun with: what is older would be late before it is here. */
  get earliestSeq(): number {
    const { setup, window, peers } = this.#state;
    const rttMs = Math.min(1_000, ...[...peers.values()].map((peer) => peer.rttMs));
    const quietMs = Math.max(setup.rules.backfillMs, setup.lagMs - START_MARGIN_MS - 5 * rttMs);
    // In a crowd, what all newcomers pull besides would be taken from those who play.
    const mostMs = this.#isCrowd ? setup.rules.backfillMs : quietMs;
    return Math.max(0, window.head + 1 - Math.min(this.#state.piecesIn(mostMs), MAX_HEADERS_ANSWERED));
  }

  /** Whether many neighbours have just come, too: they hold little behind what they are filling. */
  get #isCrowd(): boolean {
    const { peers } = this.#state;
    let young = 0;
    let greeted = 0;
    for (const { window, isGreeted, isPillar } of peers.values()) {
      if (!isGreeted || isPillar) continue;
      greeted++;
      if (!window || window.baseSeq - window.oldestSeq < this.#state.piecesIn(YOUNG_NEIGHBOUR_MS)) young++;
    }
    return greeted >= CROWD_PEERS && young > CROWD_PART * greeted;
  }

  /** The newest piece that players can begin with, at least 0.6 s behind the head; or else the newest such piece. */
  #choose(): void {
    const { window, startSeq, now } = this.#state;
    if (startSeq < 0 || window.head < 0) return;
    const newest = window.head - this.#state.piecesIn(START_BEHIND_MS);
    const oldest = Math.max(this.earliestSeq, window.oldest);
    let isKnown = true;
    let chosen = -1;
    for (let seq = newest; seq >= oldest && chosen < 0; seq--) {
      const piece = window.piece(seq);
      if (piece?.header.value.randomAccessOffset !== undefined) chosen = seq;
      else if (!piece && !window.isGap(seq)) isKnown = false;
    }
    if (chosen < 0 && this.earliestSeq < oldest) isKnown = !this.#isMoreTold(oldest);
    // A better place may be in a header that is on its way.
    if (!isKnown && now - this.#startedAt < HEADERS_MS) return;
    for (let seq = Math.max(newest + 1, oldest); seq <= window.head && chosen < 0; seq++) {
      if (window.piece(seq)?.header.value.randomAccessOffset !== undefined) chosen = seq;
    }
    this.#beginAt(chosen);
  }

  #beginAt(seq: number): void {
    this.#state.nextSeq = seq;
    this.#state.firstSeq = seq;
  }

  /** Where a later piece that players can begin with is whole before the chosen one, nothing is won by waiting for that one. */
  #beginLater(): void {
    const { window, nextSeq, now } = this.#state;
    if (nextSeq < 0 || now - this.#startedAt < FIRST_CHOICE_MS || window.isWhole(nextSeq)) return;
    for (let seq = nextSeq + 1; seq <= window.head; seq++) {
      const piece = window.piece(seq);
      if (piece?.header.value.randomAccessOffset === undefined || piece.mask !== window.fullMask) continue;
      this.#beginAt(seq);
      return;
    }
  }

  /** Whether anybody has pieces from before `seq`, or is about to say what it has. */
  #isMoreTold(seq: number): boolean {
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
    // Older than all that is kept: another start is chosen, rather than thousands of pieces skipped one by one.
    if (nextSeq < window.oldest) return false;
    const piece = window.piece(nextSeq);
    if (piece?.mask === window.fullMask) {
      const { header, chunks, completedAt } = piece;
      this.#state.emit({ kind: "piece", header, chunks, completedAt });
      this.#state.hasPlayed = true;
      this.#state.nextSeq++;
      return true;
    }
    // A piece without a header is as late as the next one that has one says.
    const known = piece ?? window.above(nextSeq);
    if (!known) return false;
    const tsMs = known.header.value.timestampMs - (known.seq - nextSeq) * setup.layout.pieceMs;
    const verdict = piece ? "wait" : this.#asking.verdict(nextSeq);
    if (verdict === "ask") return false;
    if (verdict === "wait" && timeline.latenessMs(tsMs, now) <= setup.lagMs) return false;
    let missingChunks = 0;
    for (let i = 0; i < window.stripes; i++) if (((piece?.mask ?? 0) >>> i) % 2 === 0) missingChunks++;
    this.#state.emit({ kind: "skip", seq: nextSeq, missingChunks });
    this.#state.skippedPieces++;
    this.#state.nextSeq++;
    return true;
  }
}
