import { Bits } from "../../base/bits.ts";
import type { PieceBuffers, SwarmLayout } from "./contract.ts";
import { MAX_PARTIAL_BYTES, MIN_PARTIAL_PIECES } from "./limits.ts";
import { PartialPiece } from "./partial-piece.ts";
import { pieceBytesOf } from "./piece-check.ts";

/** Pieces of the content: which are held, how many peers have each, which are in progress. */
export class Pieces {
  readonly layout: SwarmLayout;
  /** Verified pieces in the store. */
  readonly have: Bits;
  /** By piece: the number of connected peers that have it, without seeds. */
  readonly availability: Uint16Array;
  /** Started pieces, in the order in which they were started. */
  readonly partials = new Map<number, PartialPiece>();
  /** Started pieces with blocks that are not requested. */
  readonly open = new Set<PartialPiece>();
  /** Held or started pieces: these are not started again. */
  readonly busy: Bits;
  readonly #buffers: PieceBuffers;
  /** The buffer budget is exhausted: nothing is started until a buffer is returned. */
  isOutOfBuffers = false;
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

  /** Returns the length of a piece in bytes. */
  lengthOf(piece: number): number {
    return pieceBytesOf(this.layout, piece);
  }

  /** Returns up to which offset peers may request a piece. In version 2, libtorrent 2 also requests the bytes behind the end
   * of a file and expects zeros for them. */
  servedLengthOf(piece: number): number {
    return this.layout.shortPieces ? this.layout.pieceLength : this.lengthOf(piece);
  }

  /** Pads a block that the store returned with zeros behind the end of its piece. */
  padded(piece: number, begin: number, length: number, bytes: Uint8Array): Uint8Array {
    const isCut = bytes.length < length && bytes.length === Math.max(0, this.lengthOf(piece) - begin);
    if (!isCut) return bytes;
    const whole = new Uint8Array(length);
    whole.set(bytes);
    return whole;
  }

  /** Adds (`change` 1) or removes (-1) the pieces of a peer from `availability`. */
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

  /** Starts a piece; undefined if the limit on started bytes or the buffer budget is reached. */
  start(piece: number): PartialPiece | undefined {
    if (this.isOutOfBuffers) return undefined;
    const length = this.lengthOf(piece);
    const hasRoom =
      this.partials.size < MIN_PARTIAL_PIECES || this.#partialBytes + length <= MAX_PARTIAL_BYTES;
    if (!hasRoom) return undefined;
    const buffer = this.#buffers.take(length);
    if (!buffer) {
      this.isOutOfBuffers = true;
      return undefined;
    }
    const partial = new PartialPiece(piece, length, buffer, this.open);
    this.busy.set(piece);
    this.partials.set(piece, partial);
    this.#partialBytes += length;
    return partial;
  }

  /** The piece is verified; its buffer now belongs to the driver. */
  finish(partial: PartialPiece): void {
    this.partials.delete(partial.index);
    this.#partialBytes -= partial.length;
    this.have.set(partial.index);
  }

  /** The store no longer holds a piece; returns false if it was not held before. */
  drop(piece: number): boolean {
    if (!this.have.clear(piece)) return false;
    this.busy.clear(piece);
    return true;
  }

  /** Abandons a started piece and returns its buffer. No peer may be writing to it. */
  abandon(partial: PartialPiece): void {
    this.partials.delete(partial.index);
    this.open.delete(partial);
    this.busy.clear(partial.index);
    this.#partialBytes -= partial.length;
    this.isOutOfBuffers = false;
    this.#buffers.give(partial.buffer);
  }
}
