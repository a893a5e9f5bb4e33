import type { AbortSignalLike, ReadOptions } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import type { ByteRange } from "../base/range.ts";
import type { ByteReader, ByteSource } from "./contract.ts";
import { type Demand, FIRST_READ_AHEAD_BYTES, type Reader } from "./demand.ts";
import { throwIfEnded, type WaitEnd, waitForPiece } from "./piece-cursor.ts";
import type { ReadLanes } from "./read-lanes.ts";
import { readerStream } from "./reader-stream.ts";

/** What a source of one file is made of. */
export interface ByteSourceParts {
  readonly demand: Demand;
  /** Where the file begins in the whole content. */
  readonly offset: number;
  readonly size: number;
  /** Fires with its reason when the transfer stops. */
  readonly stopped: AbortSignal;
  /** The lanes of reading at random places, shared by all who use this file. */
  readonly lanes: ReadLanes;
}

/** The bytes of one file of a transfer. */
export function createByteSource(parts: ByteSourceParts): ByteSource {
  const { offset, size, lanes, stopped } = parts;
  const reader = (range: ByteRange, options: ReadOptions = {}) => {
    checkRange(range, size);
    return new RangeReader(parts, { start: offset + range.start, end: offset + range.end }, options);
  };
  return {
    size,
    async read(range, options = {}) {
      checkRange(range, size);
      const end = { signal: options.signal, stopped };
      throwIfEnded(end);
      return lanes.read({ start: offset + range.start, end: offset + range.end }, options, end);
    },
    reader,
    open: (range, options) => readerStream(reader(range, options)),
  };
}

function checkRange({ start, end }: ByteRange, size: number): void {
  if (start >= 0 && start <= end && end <= size) return;
  throw new RangeError(`expected a range within 0–${size}, got ${start}–${end}`);
}

/** Reads a range of the content from its start to its end, copying out of the pieces, so that they can be given up. */
class RangeReader implements ByteReader {
  readonly #demand: Demand;
  readonly #reader: Reader;
  readonly #endOfRange: number;
  readonly #closed = new AbortController();
  readonly #waitEnd: WaitEnd;
  readonly #maxAheadBytes: number;
  readonly #signal: AbortSignalLike | undefined;
  readonly #onAbort = () => this.close(this.#signal?.reason);
  #aheadBytes: number;
  #position: number;

  constructor({ demand, stopped }: ByteSourceParts, range: ByteRange, options: ReadOptions) {
    this.#demand = demand;
    this.#reader = demand.reader(range.end);
    this.#position = range.start;
    this.#endOfRange = range.end;
    this.#waitEnd = { signal: this.#closed.signal, stopped };
    this.#signal = options.signal;
    if (this.#signal?.aborted) this.#onAbort();
    else this.#signal?.addEventListener("abort", this.#onAbort, { once: true });
    this.#maxAheadBytes = options.readAheadBytes ?? Number.POSITIVE_INFINITY;
    this.#aheadBytes = Math.min(FIRST_READ_AHEAD_BYTES, this.#maxAheadBytes);
  }

  read(into: Uint8Array): number | Promise<number> {
    if (this.#position >= this.#endOfRange) return 0;
    if (this.#closed.signal.aborted) return Promise.reject(this.#closed.signal.reason);
    this.#reader.moveTo(this.#position, this.#aheadBytes, 1);
    const piece = this.#demand.store.peek(this.#piece);
    return piece ? this.#copy(piece, into) : this.#wait(into);
  }

  close(reason: unknown = new SluiceError("cancelled", "the reader was closed")): void {
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#reader.close();
    this.#closed.abort(reason);
  }

  /** A reader that has to wait is faster than its window: the window grows. */
  async #wait(into: Uint8Array): Promise<number> {
    const { store } = this.#demand;
    if (!store.held.has(this.#piece)) this.#grow();
    try {
      return this.#copy(await waitForPiece(store, this.#piece, this.#waitEnd), into);
    } catch (error) {
      this.close(error);
      throw error;
    }
  }

  get #piece(): number {
    return Math.floor(this.#position / this.#demand.store.layout.pieceLength);
  }

  #grow(): void {
    const limit = this.#demand.readAheadLimitBytes;
    this.#aheadBytes = Math.min(2 * this.#aheadBytes, limit, this.#maxAheadBytes);
  }

  #copy(piece: Uint8Array, into: Uint8Array): number {
    const from = this.#position % this.#demand.store.layout.pieceLength;
    const length = Math.min(into.length, piece.length - from, this.#endOfRange - this.#position);
    into.set(piece.subarray(from, from + length));
    this.#position += length;
    if (this.#position >= this.#endOfRange) this.close();
    return length;
  }
}
