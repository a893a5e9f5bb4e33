import { linkedAbort, onAbort } from "../async/abort.ts";
import type { BufferPool } from "../base/buffer-pool.ts";
import type { RandomAccess, SequentialReader } from "../base/byte-source.ts";
import { concatBytes } from "../base/bytes.ts";
import type { ByteRange } from "../base/range.ts";

/** A byte range that is read, and the position until which more is read soon. */
export interface PlannedRange extends ByteRange {
  readonly until: number;
  /** Chunks are a multiple of this, if possible: the distance of packets. */
  readonly unitBytes?: number;
}

/** Plans the byte ranges of a file in the order in which a remuxer needs them, while they are read. */
export type ReadingOrder = (signal: AbortSignal) => AsyncIterable<PlannedRange> | Iterable<PlannedRange>;

/** What {@link pieceStream} reads. */
export interface PlannedPieces {
  readonly source: RandomAccess;
  readonly ranges: ReadingOrder;
  /** Fires when the file is closed. */
  readonly closed: AbortSignal;
  /** The memory of the chunks, which the remuxer returns. Its output can be returned to it as well. */
  readonly pool?: BufferPool | undefined;
}

/** Options of {@link pieceStream}. */
export interface PieceStreamOptions {
  readonly signal?: AbortSignal | undefined;
  /** Waits until the consumer waits for data: a pipe pulls one chunk before that. */
  readonly ready?: (() => Promise<void>) | undefined;
  /** Runs each wait for bytes, for example with a time limit. */
  readonly wait?: <T>(work: () => Promise<T>, signal: AbortSignal) => Promise<T>;
}

/** Size of a chunk: large enough that its overhead is negligible, small compared to the buffers of sockets. */
const CHUNK_BYTES = 256 * 1024;
/** How far the source may read ahead of a stream: as for the raw file. */
const AHEAD_BYTES = 8 * 1024 * 1024;

/**
 * Returns the bytes of `ranges`, one range after another, as a stream. Each pull reads one chunk of at most 256 KiB, and no chunk
 * crosses the end of a range. Bytes that the source has in memory are read without a wait. Cancelling the stream aborts the read in
 * progress and ends the read-ahead.
 */
export function pieceStream(
  { source, ranges, closed, pool }: PlannedPieces,
  { signal, ready, wait = (work) => work() }: PieceStreamOptions = {},
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const stop = linkedAbort(signal, closed);
  const reader = source.sequence?.() ?? randomReads(source, stop.signal);
  const plan = iteratorOf(ranges(stop.signal));
  let at = 0;
  let [end, until, chunkBytes] = [0, 0, CHUNK_BYTES];
  onAbort(stop.signal, () => reader.close(stop.signal.reason));
  const finish = (reason?: unknown) => {
    stop.release();
    stop.abort(reason);
  };
  /** Reads the next chunk; undefined after the last range. */
  const next = async (): Promise<Uint8Array<ArrayBuffer> | undefined> => {
    await ready?.();
    stop.signal.throwIfAborted();
    while (at >= end) {
      const planned = plan.next();
      const range = planned instanceof Promise ? await wait(() => planned, stop.signal) : planned;
      if (range.done) return undefined;
      ({ start: at, end, until } = range.value);
      chunkBytes = CHUNK_BYTES - (CHUNK_BYTES % (range.value.unitBytes ?? 1));
    }
    const length = Math.min(chunkBytes, end - at);
    const bytes = pool?.take(length) ?? new Uint8Array(length);
    const start = at;
    at += bytes.length;
    const reading = reader.read(start, bytes, Math.min(Math.max(0, until - at), AHEAD_BYTES));
    if (reading) await wait(() => reading, stop.signal);
    return bytes;
  };
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const bytes = await next();
          if (stop.signal.aborted) return;
          if (bytes) return controller.enqueue(bytes);
          finish();
          controller.close();
        } catch (thrown) {
          finish(thrown);
          throw thrown;
        }
      },
      cancel: finish,
    },
    // Read only what is pulled: the remuxer itself holds one chunk.
    { highWaterMark: 0 },
  );
}

/** Serves reads that follow each other by reads at arbitrary positions. */
function randomReads(source: RandomAccess, signal: AbortSignal): SequentialReader {
  return {
    async read(position, into, readAheadBytes) {
      const range = { start: position, end: position + into.length };
      into.set(await source.read(range, { signal, readAheadBytes }));
    },
    close: () => {},
  };
}

function iteratorOf(
  ranges: ReturnType<ReadingOrder>,
): Iterator<PlannedRange, void> | AsyncIterator<PlannedRange, void> {
  return Symbol.asyncIterator in ranges ? ranges[Symbol.asyncIterator]() : ranges[Symbol.iterator]();
}

/**
 * Returns all bytes of a stream as one array that keeps no other memory, and its chunks to `pool`: a buffer of the pool is several
 * times as large as a slice of sound, which may stay in a cache. The caller bounds the stream.
 */
export async function streamBytes(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  pool?: BufferPool,
): Promise<Uint8Array<ArrayBuffer>> {
  const parts = await streamChunks(stream);
  const [first] = parts;
  if (parts.length === 1 && first!.length === first!.buffer.byteLength) return first!;
  const bytes = concatBytes(parts);
  for (const part of parts) pool?.give(part);
  return bytes;
}

/** Returns all chunks of a stream. The caller bounds the stream. */
export async function streamChunks<Chunk>(stream: ReadableStream<Chunk>): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  const reader = stream.getReader();
  for (let got = await reader.read(); !got.done; got = await reader.read()) chunks.push(got.value);
  return chunks;
}
