import type { ReadOptions } from "../base/byte-source.ts";
import type { ByteRange } from "../base/range.ts";
import type { ByteSource } from "./contract.ts";
import { type Demand, FIRST_READ_AHEAD_BYTES, type Reader } from "./demand.ts";
import { throwIfEnded, type WaitEnd, waitForPiece } from "./piece-cursor.ts";
import type { ReadLanes } from "./read-lanes.ts";

/** What a stream hands over at once: large enough that a chunk's overhead vanishes, small beside the socket's buffers. */
const CHUNK_BYTES = 256 * 1024;

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
  return {
    size,
    async read(range, options = {}) {
      checkRange(range, size);
      const end = { signal: options.signal, stopped };
      throwIfEnded(end);
      return lanes.read({ start: offset + range.start, end: offset + range.end }, options, end);
    },
    open(range, options = {}) {
      checkRange(range, size);
      return streamOf(parts, { start: offset + range.start, end: offset + range.end }, options);
    },
  };
}

function checkRange({ start, end }: ByteRange, size: number): void {
  if (start >= 0 && start <= end && end <= size) return;
  throw new RangeError(`expected a range within 0–${size}, got ${start}–${end}`);
}

/** A stream over `range` of the content: each pull hands over one chunk, copied, so that pieces can be given up. */
function streamOf(
  parts: ByteSourceParts,
  range: ByteRange,
  options: ReadOptions,
): ReadableStream<Uint8Array> {
  const end: WaitEnd = { signal: options.signal, stopped: parts.stopped };
  const stretch = new Stretch(parts.demand, range, options);
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const chunk = stretch.next();
        if (chunk === undefined) return pullWaiting(controller, stretch, end);
        hand(controller, stretch, chunk);
      },
      cancel: () => stretch.close(),
    },
    { highWaterMark: 0 },
  );
}

async function pullWaiting(
  controller: ReadableStreamDefaultController<Uint8Array>,
  stretch: Stretch,
  end: WaitEnd,
): Promise<void> {
  try {
    const chunk = await stretch.wait(end);
    if (!stretch.isClosed) hand(controller, stretch, chunk);
  } catch (error) {
    stretch.close();
    throw error;
  }
}

function hand(controller: ReadableStreamDefaultController<Uint8Array>, stretch: Stretch, chunk: Uint8Array) {
  if (chunk.length > 0) controller.enqueue(chunk);
  if (!stretch.isAtEnd) return;
  stretch.close();
  controller.close();
}

/** A reader that goes through a range from its start to its end. */
class Stretch {
  isClosed = false;
  readonly #demand: Demand;
  readonly #reader: Reader;
  readonly #end: number;
  readonly #maxAheadBytes: number;
  #aheadBytes: number;
  #position: number;

  constructor(demand: Demand, range: ByteRange, options: ReadOptions) {
    this.#demand = demand;
    this.#reader = demand.reader(range.end);
    this.#position = range.start;
    this.#end = range.end;
    this.#maxAheadBytes = options.readAheadBytes ?? Number.POSITIVE_INFINITY;
    this.#aheadBytes = Math.min(FIRST_READ_AHEAD_BYTES, this.#maxAheadBytes);
  }

  get isAtEnd(): boolean {
    return this.#position >= this.#end;
  }

  /** The next chunk where its piece is in memory; an empty one at the end; undefined where one has to wait. */
  next(): Uint8Array | undefined {
    if (this.isAtEnd) return new Uint8Array(0);
    this.#reader.moveTo(this.#position, this.#aheadBytes, 1);
    const piece = this.#demand.store.peek(this.#piece);
    return piece && this.#copy(piece);
  }

  /** The next chunk, waited for. A reader that has to wait is faster than its window: the window grows. */
  async wait(end: WaitEnd): Promise<Uint8Array> {
    if (!this.#demand.store.held.has(this.#piece)) this.#grow();
    return this.#copy(await waitForPiece(this.#demand.store, this.#piece, end));
  }

  close(): void {
    this.isClosed = true;
    this.#reader.close();
  }

  get #piece(): number {
    return Math.floor(this.#position / this.#demand.store.layout.pieceLength);
  }

  #grow(): void {
    const limit = this.#demand.readAheadLimitBytes;
    this.#aheadBytes = Math.min(2 * this.#aheadBytes, limit, this.#maxAheadBytes);
  }

  #copy(piece: Uint8Array): Uint8Array {
    const from = this.#position % this.#demand.store.layout.pieceLength;
    const length = Math.min(CHUNK_BYTES, piece.length - from, this.#end - this.#position);
    this.#position += length;
    return piece.slice(from, from + length);
  }
}
