import type { Children } from "./children.ts";
import type { FetchedChunks } from "./contract.ts";
import type { SignedHeader } from "./messages.ts";
import type { Pulls } from "./pulls.ts";
import type { LiveState } from "./state.ts";

/** An incomplete piece that has yet to be played. */
export interface MissingPiece {
  readonly header: SignedHeader;
  /** Bit set of the missing chunks. */
  readonly missing: number;
  /** Time until the piece is skipped, in ms. */
  readonly remainingMs: number;
}

/** The interface that the web fallback uses. */
export type LateMedia = Pick<Fetched, "isPlaying" | "missing" | "header" | "neighbours" | "receivedBytes">;

/** Maximum number of pieces in one report: 4 s of 125 ms. */
const MAX_REPORTED_PIECES = 32;

/** The web as a last resort: reports pieces that peers may not complete in time, and accepts chunks that
 * were fetched (live protocol: Hybrid). */
export class Fetched {
  readonly #state: LiveState;
  readonly #children: Children;
  readonly #pulls: Pulls;

  constructor(state: LiveState, children: Children, pulls: Pulls) {
    this.#state = state;
    this.#children = children;
    this.#pulls = pulls;
  }

  /** Whether a player needs the stream, and the start of playback is known. */
  get isPlaying(): boolean {
    return this.#state.nextSeq >= 0 && !this.#state.isIdle;
  }

  /** Incomplete pieces with a header that will be skipped in less than `withinMs`, the oldest first. */
  missing(withinMs: number): MissingPiece[] {
    const { window, setup, timeline, now, nextSeq, isSource } = this.#state;
    const pieces: MissingPiece[] = [];
    if (isSource || nextSeq < 0) return pieces;
    for (let seq = Math.max(nextSeq, window.oldest); seq <= window.head; seq++) {
      const piece = window.piece(seq);
      if (!piece || piece.mask === window.fullMask) continue;
      const remainingMs = setup.lagMs - timeline.latenessMs(piece.header.value.timestampMs, now);
      if (remainingMs >= withinMs || pieces.length === MAX_REPORTED_PIECES) break;
      if (remainingMs <= 0) continue;
      pieces.push({ header: piece.header, missing: window.fullMask & ~piece.mask, remainingMs });
    }
    return pieces;
  }

  /** The header of a piece, if it is known. */
  header(seq: number): SignedHeader | undefined {
    return this.#state.window.piece(seq)?.header;
  }

  /** Bytes of all chunks received from peers. */
  get receivedBytes(): number {
    return this.#state.receivedBytes;
  }

  /** The number of peers that may lack the same pieces. */
  get neighbours(): number {
    let count = 0;
    for (const { about, hasSentHello } of this.#state.peers.values())
      if (hasSentHello && about.role !== "source") count++;
    return count;
  }

  /** Verifies fetched chunks like those of a peer, and forwards the valid ones as late chunks. */
  take({ epoch, seq, chunks }: FetchedChunks): void {
    const { window, setup, now } = this.#state;
    const piece = window.piece(seq);
    if (epoch !== this.#state.epoch || !piece) return;
    for (const { stripe, bytes } of chunks) {
      if (
        stripe >= window.stripes ||
        window.has(seq, stripe) ||
        !setup.isValidChunk(piece.header, stripe, bytes)
      )
        continue;
      window.addChunk(piece, stripe, bytes, now);
      this.#pulls.chunkReceived(seq, stripe, undefined);
      this.#children.forward({ piece, stripe, from: undefined, isLate: true });
    }
  }
}
