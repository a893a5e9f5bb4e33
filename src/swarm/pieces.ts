import { Bits } from "../base/bits.ts";
import type { PieceBuffers, SwarmLayout } from "./contract.ts";
import { MAX_PARTIAL_BYTES, MIN_PARTIAL_PIECES } from "./limits.ts";
import { PartialPiece } from "./partial-piece.ts";
import { pieceBytesOf } from "./piece-check.ts";

/** The pieces of the content: which we hold, how many peers have each, which are on their way. */
export class Pieces {
  readonly layout: SwarmLayout;
  /** Verified, and in the store. */
  readonly have: Bits;
  /** By piece: how many connected peers have it, besides those that have all. */
  readonly availability: Uint16Array;
  /** In the order in which they were started. */
  readonly partials = new Map<number, PartialPiece>();
  /** Those of them with blocks that nobody was asked for yet. */
  readonly open = new Set<PartialPiece>();
  /** Held or started: not to be started again. */
  readonly busy: Bits;
  readonly #buffers: PieceBuffers;
  /** The budget for buffers is spent: nothing is started until some become free. */
  isStarved = false;
  #partialBytes = 0;

  constructor(layout: SwarmLayout, held: Iterable<number>, buffers: PieceBuffers) {
    this.layout = layout;
    this.have = new Bits(layout.pieceCount);
    this.busy = new Bits(layout.pieceCount);
    this.availability = new Uint16Array(layout.pieceCount);
    this.#buffers = buffers;
    for (const piece of held) {
      this.have.set(piece);
      this.busy.set(piece);
    }
  }

  get isComplete(): boolean {
    return this.have.count === this.layout.pieceCount;
  }

  /** The length of a piece: some are shorter than others. */
  lengthOf(piece: number): number {
    return pieceBytesOf(this.layout, piece);
  }

  /** How far a piece may be asked for. libtorrent 2 asks in version 2 for what would lie behind the end of a file, too, and
   * takes zeros for it, as if padding were there. */
  servedLengthOf(piece: number): number {
    return this.layout.shortPieces ? this.layout.pieceLength : this.lengthOf(piece);
  }

  /** A block of `length` bytes out of what the store has of it: with zeros behind the end of its piece. */
  padded(piece: number, begin: number, length: number, bytes: Uint8Array): Uint8Array {
    const isCut = bytes.length < length && bytes.length === Math.max(0, this.lengthOf(piece) - begin);
    if (!isCut) return bytes;
    const whole = new Uint8Array(length);
    whole.set(bytes);
    return whole;
  }

  /** Counts the pieces of a peer in (`change` 1) or out (-1). */
  count(bits: Bits, change: 1 | -1): void {
    for (let at = 0; at < bits.bytes.length; at++) {
      let byte = bits.bytes[at]!;
      while (byte !== 0) {
        const bit = Math.clz32(byte) - 24;
        this.availability[at * 8 + bit]! += change;
        byte &= ~(0x80 >> bit);
      }
    }
  }

  /** Starts a piece; undefined where the limit on unverified bytes or the budget for buffers is reached. */
  start(piece: number): PartialPiece | undefined {
    if (this.isStarved) return undefined;
    const length = this.lengthOf(piece);
    const isRoomy =
      this.partials.size < MIN_PARTIAL_PIECES || this.#partialBytes + length <= MAX_PARTIAL_BYTES;
    if (!isRoomy) return undefined;
    const buffer = this.#buffers.take(length);
    if (!buffer) {
      this.isStarved = true;
      return undefined;
    }
    const partial = new PartialPiece(piece, length, buffer, this.open);
    this.busy.set(piece);
    this.partials.set(piece, partial);
    this.#partialBytes += length;
    return partial;
  }

  /** The piece is verified: its buffer is no longer ours. */
  finish(partial: PartialPiece): void {
    this.partials.delete(partial.index);
    this.#partialBytes -= partial.length;
    this.have.set(partial.index);
  }

  /** The store no longer holds a piece; false where we did not think so either. */
  drop(piece: number): boolean {
    if (!this.have.clear(piece)) return false;
    this.busy.clear(piece);
    return true;
  }

  /** Gives up a piece that was started, and its buffer. The caller has seen to it that nobody writes there. */
  abandon(partial: PartialPiece): void {
    this.partials.delete(partial.index);
    this.open.delete(partial);
    this.busy.clear(partial.index);
    this.#partialBytes -= partial.length;
    this.isStarved = false;
    this.#buffers.give(partial.buffer);
  }
}
