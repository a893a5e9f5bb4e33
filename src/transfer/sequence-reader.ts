import type { SequentialReader } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import type { Demand, Reader } from "./demand.ts";
import { type WaitEnd, waitForPiece } from "./wait-for-piece.ts";

/** Reads at increasing positions of one file, with one window. It copies out of the pieces, so that their memory can be reused. */
export class SequenceReader implements SequentialReader {
  readonly #demand: Demand;
  readonly #reader: Reader;
  /** Position of the file in the whole content. */
  readonly #offset: number;
  readonly #closed = new AbortController();
  readonly #end: WaitEnd;

  /** `stopped` fires with its reason when the transfer stops. */
  constructor(demand: Demand, file: { offset: number; size: number }, stopped: AbortSignal) {
    this.#demand = demand;
    this.#offset = file.offset;
    this.#reader = demand.reader(file.offset + file.size);
    this.#end = { signal: this.#closed.signal, stopped };
  }

  read(position: number, into: Uint8Array, readAheadBytes: number): Promise<void> | undefined {
    if (this.#closed.signal.aborted) return Promise.reject(this.#closed.signal.reason);
    const start = this.#offset + position;
    const filled = this.#fill(start, into, 0, readAheadBytes);
    return filled === into.length ? undefined : this.#wait(start, into, filled, readAheadBytes);
  }

  close(reason: unknown = new SluiceError("cancelled", "the reader was closed")): void {
    this.#reader.close();
    this.#closed.abort(reason);
  }

  /** Copies pieces as far as they are in memory. Returns how many bytes of `into` are filled, `filled` of them before. */
  #fill(start: number, into: Uint8Array, filled: number, readAheadBytes: number): number {
    const { store } = this.#demand;
    let length = filled;
    while (length < into.length) {
      const missing = into.length - length;
      this.#reader.moveTo(start + length, missing + readAheadBytes, missing);
      const piece = store.peek(this.#pieceAt(start + length));
      if (!piece) break;
      length += this.#copy(piece, start + length, into, length);
    }
    return length;
  }

  async #wait(start: number, into: Uint8Array, filled: number, readAheadBytes: number): Promise<void> {
    for (let length = filled; length < into.length; ) {
      const at = start + length;
      const piece = await waitForPiece(this.#demand.store, this.#pieceAt(at), this.#end);
      length += this.#copy(piece, at, into, length);
      length = this.#fill(start, into, length, readAheadBytes);
    }
  }

  #pieceAt(position: number): number {
    return Math.floor(position / this.#demand.store.layout.pieceLength);
  }

  /** Copies the part of `piece` from `position` on to offset `to` of `into`; returns its length. */
  #copy(piece: Uint8Array, position: number, into: Uint8Array, to: number): number {
    const from = position % this.#demand.store.layout.pieceLength;
    const length = Math.min(piece.length - from, into.length - to);
    into.set(piece.subarray(from, from + length), to);
    return length;
  }
}
