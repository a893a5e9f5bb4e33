import type { Children } from "./children.ts";
import type { SignedHeader } from "./messages.ts";
import type { Pulls } from "./pulls.ts";
import type { LiveState } from "./state.ts";

/** A piece that players wait for, and of which something is not here. */
export interface MissingPiece {
  readonly header: SignedHeader;
  /** A bit for each chunk that is not here. */
  readonly missing: number;
  /** Until it is skipped. */
  readonly remainingMs: number;
}

/** What was found elsewhere than with peers: chunks of one piece. */
export interface FetchedChunks {
  readonly epoch: number;
  readonly seq: number;
  readonly chunks: readonly { readonly stripe: number; readonly bytes: Uint8Array }[];
}

/** What peers may not bring in time, as who looks for it elsewhere sees it. */
export type LateMedia = Pick<Fetched, "isPlaying" | "missing" | "header" | "neighbours" | "receivedBytes">;

/** So many pieces are told at once: 4 s of 125 ms. */
const MAX_TOLD_PIECES = 32;

/** The web as a last resort: tells what is about to be missed, and takes what was found of it (live protocol: Hybrid). */
export class Fetched {
  readonly #state: LiveState;
  readonly #children: Children;
  readonly #pulls: Pulls;

  constructor(state: LiveState, children: Children, pulls: Pulls) {
    this.#state = state;
    this.#children = children;
    this.#pulls = pulls;
  }

  /** Whether it is known where players are. */
  get isPlaying(): boolean {
    return this.#state.nextSeq >= 0;
  }

  /** Pieces with a header that lack chunks and have less than `withinMs` until they are skipped, the oldest first. */
  missing(withinMs: number): MissingPiece[] {
    const { window, setup, timeline, now, nextSeq, isSource } = this.#state;
    const told: MissingPiece[] = [];
    if (isSource || nextSeq < 0) return told;
    for (let seq = Math.max(nextSeq, window.oldest); seq <= window.head; seq++) {
      const piece = window.piece(seq);
      if (!piece || piece.mask === window.fullMask) continue;
      const remainingMs = setup.lagMs - timeline.latenessMs(piece.header.value.timestampMs, now);
      if (remainingMs >= withinMs || told.length === MAX_TOLD_PIECES) break;
      if (remainingMs <= 0) continue;
      told.push({ header: piece.header, missing: window.fullMask & ~piece.mask, remainingMs });
    }
    return told;
  }

  /** The header of a piece, where it is here. */
  header(seq: number): SignedHeader | undefined {
    return this.#state.window.piece(seq)?.header;
  }

  /** What peers have given. */
  get receivedBytes(): number {
    return this.#state.receivedBytes;
  }

  /** Peers that may lack the same. */
  get neighbours(): number {
    let count = 0;
    for (const { about, isGreeted } of this.#state.peers.values())
      if (isGreeted && about.role !== "source") count++;
    return count;
  }

  /** Takes chunks as a peer's are taken: what does not fit its hash is dropped, what fits goes on as late. */
  take({ epoch, seq, chunks }: FetchedChunks): void {
    const { window, setup, now } = this.#state;
    const piece = window.piece(seq);
    if (epoch !== this.#state.epoch || !piece) return;
    for (const { stripe, bytes } of chunks) {
      if (stripe >= window.stripes || window.has(seq, stripe) || !setup.fits(piece.header, stripe, bytes))
        continue;
      window.addChunk(piece, stripe, bytes, now);
      this.#pulls.came(seq, stripe, undefined);
      this.#children.forward({ piece, stripe, from: undefined, isLate: true });
    }
  }
}
