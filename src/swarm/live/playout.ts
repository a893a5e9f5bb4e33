import { REHOOK_MS, START_BEHIND_MS } from "./limits.ts";
import type { LiveState } from "./state.ts";

/** The headers that tell where to begin are waited for so long. */
const HEADERS_MS = 250;

/** The way out: whole pieces in order, and what is too late is skipped. */
export class Playout {
  readonly #state: LiveState;
  #startedAt: number;
  #hasPlayed = false;

  constructor(state: LiveState) {
    this.#state = state;
    this.#startedAt = state.now;
  }

  /** A start was chosen, or is to be chosen again. */
  began(): void {
    this.#startedAt = this.#state.now;
    this.#hasPlayed = false;
  }

  /** Nothing has come out for so long that another start is better. */
  get isStuck(): boolean {
    const { nextSeq, startSeq, window, now } = this.#state;
    if (startSeq < 0) return false;
    if (nextSeq >= 0 && nextSeq < window.oldest) return true;
    return (
      !this.#hasPlayed &&
      now - this.#startedAt > REHOOK_MS &&
      nextSeq >= 0 &&
      window.head - nextSeq > this.#state.piecesIn(this.#state.setup.lagMs)
    );
  }

  /** Gives out what is whole, and skips what is too late. */
  round(): void {
    if (this.#state.nextSeq < 0) this.#choose();
    while (this.#state.nextSeq >= 0 && this.#step());
  }

  /** The newest piece that players can begin with, at least 0.6 s behind the head; or else the newest such piece. */
  #choose(): void {
    const { window, startSeq } = this.#state;
    if (startSeq < 0 || window.head < 0) return;
    // A better place may be in a header that is on its way.
    if (this.#state.now - this.#startedAt < HEADERS_MS && !this.#areHeadersHere()) return;
    const behind = this.#state.piecesIn(START_BEHIND_MS);
    let chosen = -1;
    for (let seq = Math.max(startSeq, window.oldest); seq <= window.head; seq++) {
      const offset = window.piece(seq)?.header.value.randomAccessOffset;
      if (offset === undefined) continue;
      if (chosen < 0 || seq <= window.head - behind) chosen = seq;
    }
    this.#state.nextSeq = chosen;
  }

  #areHeadersHere(): boolean {
    const { window, startSeq } = this.#state;
    for (let seq = Math.max(startSeq, 0); seq <= window.head; seq++) if (!window.piece(seq)) return false;
    return true;
  }

  #step(): boolean {
    const { window, nextSeq, setup, timeline, now } = this.#state;
    const piece = window.piece(nextSeq);
    if (piece?.mask === window.fullMask) {
      const { header, chunks, completedAt } = piece;
      this.#state.emit({ kind: "piece", header, chunks, completedAt });
      this.#hasPlayed = true;
      this.#state.nextSeq++;
      return true;
    }
    // A piece without a header is as late as the next one that has one says.
    const known = piece ?? this.#nextKnown(nextSeq);
    if (!known) return false;
    const tsMs = known.header.value.timestampMs - (known.seq - nextSeq) * setup.layout.pieceMs;
    if (timeline.latenessMs(tsMs, now) <= setup.lagMs) return false;
    let missingChunks = 0;
    for (let i = 0; i < window.stripes; i++) if (((piece?.mask ?? 0) >>> i) % 2 === 0) missingChunks++;
    this.#state.emit({ kind: "skip", seq: nextSeq, missingChunks });
    this.#state.skippedPieces++;
    this.#state.nextSeq++;
    return true;
  }

  #nextKnown(seq: number) {
    const { window } = this.#state;
    for (let next = Math.max(seq + 1, window.oldest); next <= window.head; next++) {
      const piece = window.piece(next);
      if (piece) return piece;
    }
    return undefined;
  }
}
