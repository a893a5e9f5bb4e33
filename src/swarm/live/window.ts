import type { Instant } from "../../base/time.ts";
import { chunkRange } from "../../wire/live-chunks.ts";
import type { SignedHeader } from "./messages.ts";

/** One piece as far as it is here. Every chunk in it is verified. */
export interface LivePiece {
  readonly seq: number;
  readonly header: SignedHeader;
  /** A bit for each chunk that is here. */
  mask: number;
  readonly chunks: Uint8Array[];
  completedAt: Instant;
}

/** Numbers from `start` to before `end` that the source never used. */
interface Gap {
  readonly start: number;
  readonly end: number;
}

const EMPTY = new Uint8Array(0);
/** A source that begins again leaves one gap; who restarts more often than that within one window has other troubles. */
const MAX_GAPS = 16;

/** The pieces that are kept: a ring of fixed size, so that nothing a peer says can make it grow. */
export class PieceWindow {
  readonly stripes: number;
  /** All bits of a whole piece. */
  readonly fullMask: number;
  readonly #ring: (LivePiece | undefined)[];
  #gaps: Gap[] = [];
  #head = -1;
  #oldest = -1;

  constructor(stripes: number, capacity: number) {
    this.stripes = stripes;
    this.fullMask = 2 ** stripes - 1;
    this.#ring = new Array<LivePiece | undefined>(capacity).fill(undefined);
  }

  /** The newest piece with a verified header; −1 before the first. */
  get head(): number {
    return this.#head;
  }

  /** The oldest piece that may be here. */
  get oldest(): number {
    return this.#oldest;
  }

  /** Whether there is no room for a piece so far behind the newest one. */
  isTooOld(seq: number): boolean {
    return this.#head >= 0 && seq <= this.#head - this.#ring.length;
  }

  /** The piece, where anything of it is known. */
  piece(seq: number): LivePiece | undefined {
    const piece = this.#ring[seq % this.#ring.length];
    return piece?.seq === seq ? piece : undefined;
  }

  /** Whether the chunk is here; of numbers that were never made, there is nothing to be had. */
  has(seq: number, stripe: number): boolean {
    const piece = this.piece(seq);
    return piece ? ((piece.mask >>> stripe) & 1) === 1 : this.isGap(seq);
  }

  /** A bit for each chunk of the piece that is here, or was never made. */
  maskOf(seq: number): number {
    return this.piece(seq)?.mask ?? (this.isGap(seq) ? this.fullMask : 0);
  }

  /** Whether all of the piece is here; numbers that were never made count as whole, so that runs go on. */
  isWhole(seq: number): boolean {
    const piece = this.piece(seq);
    return piece ? piece.mask === this.fullMask : this.isGap(seq);
  }

  /** Whether the number was never made. */
  isGap(seq: number): boolean {
    return this.#gaps.length > 0 && this.nextMade(seq) > seq;
  }

  /** The first number from `seq` on that is not known to have been left out. */
  nextMade(seq: number): number {
    return this.#gaps.find(({ start, end }) => start <= seq && seq < end)?.end ?? seq;
  }

  /** Notes that nothing was made from `start` to before `end`. */
  addGap(start: number, end: number): void {
    if (start >= end || this.isGap(start)) return;
    this.#gaps = this.#gaps.filter((gap) => gap.end > this.#oldest).slice(1 - MAX_GAPS);
    this.#gaps.push({ start, end });
  }

  /** The known piece next below `seq`. */
  below(seq: number): LivePiece | undefined {
    if (seq > this.#head) return this.piece(this.#head);
    for (let at = seq - 1; at >= this.#oldest; at--) {
      const piece = this.piece(at);
      if (piece) return piece;
    }
    return undefined;
  }

  /** The known piece next above `seq`. */
  above(seq: number): LivePiece | undefined {
    for (let at = Math.max(seq + 1, this.#oldest); at <= this.#head; at++) {
      const piece = this.piece(at);
      if (piece) return piece;
    }
    return undefined;
  }

  /** Makes room for a verified header; the oldest pieces leave. False where it is too old, or here already. */
  addHeader(header: SignedHeader, now: Instant): boolean {
    const { seq, pieceBytes } = header.value;
    if (this.isTooOld(seq)) return false;
    if (this.piece(seq)) return false;
    const mask = emptyChunks(pieceBytes, this.stripes);
    const chunks = new Array<Uint8Array>(this.stripes).fill(EMPTY);
    this.#ring[seq % this.#ring.length] = { seq, header, mask, chunks, completedAt: now };
    if (seq > this.#head) this.#head = seq;
    if (this.#oldest < 0 || seq < this.#oldest) this.#oldest = seq;
    this.#oldest = Math.max(this.#oldest, this.#head - this.#ring.length + 1);
    return true;
  }

  /** Adds a verified chunk of a piece whose header is here. False where it is here already. */
  addChunk(piece: LivePiece, stripe: number, bytes: Uint8Array, now: Instant): boolean {
    const bit = 1 << stripe;
    if ((piece.mask & bit) !== 0) return false;
    piece.mask |= bit;
    piece.chunks[stripe] = bytes;
    if (piece.mask === this.fullMask) piece.completedAt = now;
    return true;
  }

  /** Forgets all: a new epoch. */
  reset(): void {
    this.#ring.fill(undefined);
    this.#gaps = [];
    this.#head = -1;
    this.#oldest = -1;
  }
}

/** The chunks of a short piece that hold nothing, and that nobody sends. */
function emptyChunks(length: number, stripes: number): number {
  let mask = 0;
  for (let i = stripes - 1; i >= 0; i--) {
    const { start, end } = chunkRange(length, stripes, i);
    if (start < end) break;
    mask |= 1 << i;
  }
  return mask;
}
