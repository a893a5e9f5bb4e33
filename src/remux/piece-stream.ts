import { linkedAbort } from "../async/abort.ts";
import type { RandomAccess } from "../base/byte-source.ts";
import { concatBytes } from "../base/bytes.ts";
import type { ByteRange } from "../base/range.ts";

/** A byte range that is read, and the position until which more is read soon. */
export interface PlannedRange extends ByteRange {
  readonly until: number;
}

/** Plans the byte ranges of a file in the order in which a remuxer needs them, while they are read. */
export type ReadingOrder = (signal: AbortSignal) => AsyncIterable<PlannedRange> | Iterable<PlannedRange>;

/** What {@link pieceStream} reads. */
export interface PlannedPieces {
  readonly source: RandomAccess;
  readonly ranges: ReadingOrder;
  /** Fires when the file is closed. */
  readonly closed: AbortSignal;
}

/** Options of {@link pieceStream}. */
export interface PieceStreamOptions {
  readonly signal?: AbortSignal | undefined;
  /** Runs each wait for bytes, for example with a time limit. */
  readonly wait?: <T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal) => Promise<T>;
}

/** Size of a chunk: large enough that its overhead is negligible, small compared to the buffers of sockets. */
const CHUNK_BYTES = 256 * 1024;
/** How far the source may read ahead of a stream: as for the raw file. */
const AHEAD_BYTES = 8 * 1024 * 1024;

/**
 * Returns the bytes of `ranges`, one range after another, as a stream. Each pull reads one chunk of at most 256 KiB, and no chunk
 * crosses the end of a range. Cancelling the stream aborts the read in progress and ends the read-ahead.
 */
export function pieceStream(
  { source, ranges, closed }: PlannedPieces,
  { signal, wait = (work, stopped) => work(stopped) }: PieceStreamOptions = {},
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const stop = linkedAbort(signal, closed);
  const plan = iteratorOf(ranges(stop.signal));
  let at = 0;
  let [end, until] = [0, 0];
  const next = async (stopped: AbortSignal) => {
    stopped.throwIfAborted();
    while (at >= end) {
      const range = await plan.next();
      if (range.done) return undefined;
      ({ start: at, end, until } = range.value);
    }
    const range = { start: at, end: Math.min(end, at + CHUNK_BYTES) };
    const readAheadBytes = Math.min(Math.max(0, until - range.end), AHEAD_BYTES);
    const bytes = await source.read(range, { signal: stopped, readAheadBytes });
    at = range.end;
    return bytes;
  };
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const bytes = await wait(next, stop.signal);
          if (stop.signal.aborted) return;
          if (bytes) return controller.enqueue(bytes);
          stop.release();
          controller.close();
        } catch (thrown) {
          stop.release();
          throw thrown;
        }
      },
      cancel(reason) {
        stop.release();
        stop.abort(reason);
      },
    },
    // Read only what is pulled: the remuxer itself holds one chunk.
    { highWaterMark: 0 },
  );
}

function iteratorOf(
  ranges: ReturnType<ReadingOrder>,
): Iterator<PlannedRange, void> | AsyncIterator<PlannedRange, void> {
  return Symbol.asyncIterator in ranges ? ranges[Symbol.asyncIterator]() : ranges[Symbol.iterator]();
}

/** Returns all bytes of a stream as one array. The caller bounds the stream. */
export async function streamBytes(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
): Promise<Uint8Array<ArrayBuffer>> {
  const parts = await streamChunks(stream);
  return parts.length === 1 ? parts[0]! : concatBytes(parts);
}

/** Returns all chunks of a stream. The caller bounds the stream. */
export async function streamChunks<Chunk>(stream: ReadableStream<Chunk>): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  const reader = stream.getReader();
  for (let got = await reader.read(); !got.done; got = await reader.read()) chunks.push(got.value);
  return chunks;
}
