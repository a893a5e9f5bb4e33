import { onAbort } from "../async/abort.ts";
import type { ByteReader, ReadOptions } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import type { ByteRange } from "../base/range.ts";
import type { ByteSource } from "./contract.ts";
import { type Demand, FIRST_READ_AHEAD_BYTES, type Reader } from "./demand.ts";
import type { ReadLanes } from "./read-lanes.ts";
import { readerStream } from "./reader-stream.ts";
import { SequenceReader } from "./sequence-reader.ts";
import { throwIfEnded, type WaitEnd, waitForPiece } from "./wait-for-piece.ts";

/** Dependencies of {@link createByteSource}. */
export interface ByteSourceDependencies {
  readonly demand: Demand;
  /** Position of the file in the whole content. */
  readonly offset: number;
  readonly size: number;
  /** Fires with its reason when the transfer stops. */
  readonly stopped: AbortSignal;
  /** The lanes for reads at arbitrary positions, shared by all users of this file. */
  readonly lanes: ReadLanes;
}

/** Creates the source of one file. It throws `RangeError` for a range outside the file. */
export function createByteSource(dependencies: ByteSourceDependencies): ByteSource {
  const { offset, size, lanes, stopped } = dependencies;
  const reader = (range: ByteRange, options: ReadOptions = {}) => {
    checkRange(range, size);
    return new RangeReader(dependencies, { start: offset + range.start, end: offset + range.end }, options);
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
    sequence: () => new SequenceReader(dependencies.demand, { offset, size }, stopped),
    open: (range, options) => readerStream(reader(range, options)),
  };
}

function checkRange({ start, end }: ByteRange, size: number): void {
  if (start >= 0 && start <= end && end <= size) return;
  throw new RangeError(`expected a range within 0–${size}, got ${start}–${end}`);
}

/** Reads a range of the content in order. It copies out of the pieces, so that their memory can be reused. */
class RangeReader implements ByteReader {
  readonly #demand: Demand;
  readonly #reader: Reader;
  readonly #endOfRange: number;
  readonly #closed = new AbortController();
  readonly #waitEnd: WaitEnd;
  #release: () => void = () => {};
  #aheadBytes = FIRST_READ_AHEAD_BYTES;
  #position: number;

  constructor({ demand, stopped }: ByteSourceDependencies, range: ByteRange, options: ReadOptions) {
    this.#demand = demand;
    this.#reader = demand.reader(range.end);
    this.#position = range.start;
    this.#endOfRange = range.end;
    this.#waitEnd = { signal: this.#closed.signal, stopped };
    this.#release = onAbort(options.signal, () => this.close(options.signal?.reason));
  }

  read(into: Uint8Array): number | Promise<number> {
    if (this.#position >= this.#endOfRange) return 0;
    if (this.#closed.signal.aborted) return Promise.reject(this.#closed.signal.reason);
    this.#reader.moveTo(this.#position, this.#aheadBytes, 1);
    const piece = this.#demand.store.peek(this.#piece);
    return piece ? this.#copy(piece, into) : this.#wait(into);
  }

  close(reason: unknown = new SluiceError("cancelled", "the reader was closed")): void {
    this.#release();
    this.#reader.close();
    this.#closed.abort(reason);
  }

  /** Waits for the piece. The window grows first, because the reader is faster than its read-ahead. */
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
    this.#aheadBytes = Math.min(2 * this.#aheadBytes, limit);
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
