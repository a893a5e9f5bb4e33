import { type Instant, instant } from "../../base/time.ts";
import { chunkRange } from "../../wire/live/chunks.ts";
import type { SignedHeader } from "./messages.ts";

/** What is held of one piece. Every chunk in it is verified. */
export interface LivePiece {
  readonly seq: number;
  readonly header: SignedHeader;
  /** Bit set of the held chunks. */
  mask: number;
  readonly chunks: Uint8Array[];
  /** Bit set of the chunks that are empty, and therefore never sent. */
  readonly empty: number;
  /** When the header arrived. */
  readonly knownAt: Instant;
  completedAt: Instant;
}

/** Sequence numbers in `[start, end)` that the source never used. */
interface Gap {
  readonly start: number;
  readonly end: number;
}

const EMPTY = new Uint8Array(0);
/** Each restart of the source leaves one gap; only the newest gaps are remembered. */
const MAX_GAPS = 16;

/** The pieces that are kept: a ring of fixed size, so that no message of a peer can make it grow. */
export class PieceWindow {
  readonly stripes: number;
  /** The mask of a complete piece. */
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

  /** The oldest piece that may be held; −1 before the first. */
  get oldest(): number {
    return this.#oldest;
  }

  /** Whether a piece is too far behind the newest one to be kept. */
  isTooOld(seq: number): boolean {
    return this.#head >= 0 && seq <= this.#head - this.#ring.length;
  }

  /** Returns the piece if its header is known. */
  piece(seq: number): LivePiece | undefined {
    const piece = this.#ring[seq % this.#ring.length];
    return piece?.seq === seq ? piece : undefined;
  }

  /** Whether the chunk is held. Numbers that were never made count as held. */
  has(seq: number, stripe: number): boolean {
    const piece = this.piece(seq);
    return piece ? ((piece.mask >>> stripe) & 1) === 1 : this.isGap(seq);
  }

  /** Bit set of the held chunks of a piece; all bits if it was never made. */
  maskOf(seq: number): number {
    return this.piece(seq)?.mask ?? (this.isGap(seq) ? this.fullMask : 0);
  }

  /** Whether the piece is complete. Numbers that were never made count as complete, so that runs continue. */
  isWhole(seq: number): boolean {
    const piece = this.piece(seq);
    return piece ? piece.mask === this.fullMask : this.isGap(seq);
  }

  /** Whether the number is known never to have been made. */
  isGap(seq: number): boolean {
    return this.#gaps.length > 0 && this.nextMade(seq) > seq;
  }

  /** The first number from `seq` on that is not in a gap. */
  nextMade(seq: number): number {
    return this.#gaps.find(({ start, end }) => start <= seq && seq < end)?.end ?? seq;
  }

  /** The first number above the gap that contains `seq`; undefined if no gap does. */
  gapEnd(seq: number): number | undefined {
    return this.isGap(seq) ? this.nextMade(seq) : undefined;
  }

  /** Records that the numbers in `[start, end)` were never made. */
  addGap(start: number, end: number): void {
    if (start >= end || this.isGap(start)) return;
    this.#gaps = this.#gaps.filter((gap) => gap.end > this.#oldest).slice(1 - MAX_GAPS);
    this.#gaps.push({ start, end });
  }

  /** The nearest known piece below `seq`. */
  below(seq: number): LivePiece | undefined {
    if (seq > this.#head) return this.piece(this.#head);
    for (let at = seq - 1; at >= this.#oldest; at--) {
      const piece = this.piece(at);
      if (piece) return piece;
    }
    return undefined;
  }

  /** The nearest known piece above `seq`. */
  above(seq: number): LivePiece | undefined {
    for (let at = Math.max(seq + 1, this.#oldest); at <= this.#head; at++) {
      const piece = this.piece(at);
      if (piece) return piece;
    }
    return undefined;
  }

  /** The first piece after `seq` whose chunk of the stripe is not empty, and when its header arrived (0 without one). */
  firstOwed(stripe: number, seq: number): Pick<LivePiece, "seq" | "knownAt"> | undefined {
    for (let at = Math.max(seq + 1, this.#oldest); at <= this.#head; at++) {
      const piece = this.piece(at);
      if (!piece && !this.isGap(at)) return { seq: at, knownAt: instant(0) };
      if (piece && ((piece.empty >>> stripe) & 1) === 0) return piece;
    }
    return undefined;
  }

  /** Whether headers have arrived since `since`, and the stripe is empty in all of their pieces. */
  isEmptySince(stripe: number, since: number): boolean {
    let seq = this.#head;
    for (let piece = this.piece(seq); piece && piece.knownAt >= since; piece = this.piece(--seq))
      if (((piece.empty >>> stripe) & 1) === 0) return false;
    return seq < this.#head;
  }

  /** Adds a piece by its verified header and evicts the oldest pieces. Returns false if it is too old or
   * known already. */
  addHeader(header: SignedHeader, now: Instant): boolean {
    const { seq, pieceBytes } = header.value;
    if (this.isTooOld(seq)) return false;
    if (this.piece(seq)) return false;
    const empty = emptyChunks(pieceBytes, this.stripes);
    const chunks = new Array<Uint8Array>(this.stripes).fill(EMPTY);
    this.#ring[seq % this.#ring.length] = {
      ...{ seq, header, chunks, empty },
      ...{ mask: empty, knownAt: now, completedAt: now },
    };
    if (seq > this.#head) this.#head = seq;
    if (this.#oldest < 0 || seq < this.#oldest) this.#oldest = seq;
    this.#oldest = Math.max(this.#oldest, this.#head - this.#ring.length + 1);
    return true;
  }

  /** Removes a piece that belongs to another version of the stream, and the gaps next to it. */
  remove({ seq }: LivePiece): void {
    this.#ring[seq % this.#ring.length] = undefined;
    this.#gaps = this.#gaps.filter(({ start, end }) => start !== seq + 1 && end !== seq);
    while (this.#head >= this.#oldest && !this.piece(this.#head)) this.#head--;
    if (this.#head < this.#oldest) this.reset();
  }

  /** Whether a chunk of the piece was received. */
  hasData({ mask, header }: LivePiece): boolean {
    return mask !== emptyChunks(header.value.pieceBytes, this.stripes);
  }

  /** Adds a verified chunk of a known piece. Returns false if it is held already. */
  addChunk(piece: LivePiece, stripe: number, bytes: Uint8Array, now: Instant): boolean {
    const bit = 1 << stripe;
    if ((piece.mask & bit) !== 0) return false;
    piece.mask |= bit;
    piece.chunks[stripe] = bytes;
    if (piece.mask === this.fullMask) piece.completedAt = now;
    return true;
  }

  /** Discards all pieces, for a new epoch. */
  reset(): void {
    this.#ring.fill(undefined);
    this.#gaps = [];
    this.#head = -1;
    this.#oldest = -1;
  }
}

/** Bit set of the chunks of a short piece that are empty, and never sent. */
function emptyChunks(length: number, stripes: number): number {
  let mask = 0;
  for (let i = stripes - 1; i >= 0; i--) {
    const { start, end } = chunkRange(length, stripes, i);
    if (start < end) break;
    mask |= 1 << i;
  }
  return mask;
}
