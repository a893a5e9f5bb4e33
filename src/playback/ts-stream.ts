import { deferred } from "../async/deferred.ts";
import { resolvesWithin } from "../async/sleep.ts";
import { SluiceError } from "../base/errors.ts";
import { nullPackets } from "../media/ts-packet.ts";
import type { Clock } from "../runtime/contract.ts";
import type { PlayerMedia } from "../transfer/segment-source.ts";

/** Interval of null packets while a player waits for its first data. */
const KEEP_ALIVE_MS = 500;
/**
 * Number of null packets that are sent at once: the usual size of a network packet of a transport stream. CHOICE(null-packets): they are
 * sent only before the first data, at least 8 s after the request, so that no player mistakes them for the content.
 */
export const KEEP_ALIVE_PACKETS = 7;

/** Size of the buffer for a consumer that has none. */
const CHUNK_BYTES = 256 * 1024;

/** Remuxed media, and what takes its chunks back. */
interface OpenedStream {
  readonly stream: ReadableStream<Uint8Array>;
  readonly release: PlayerMedia["release"];
}

/** Options of {@link transportStream}. */
export interface TransportStreamOptions {
  readonly clock: Clock;
  /** Ends the stream when it fires. */
  readonly ended: AbortSignal;
  /**
   * Opens the media; called at the first pull. The signal fires when the stream has ended or was canceled. `pulled` waits until
   * the player waits for data: a pipe reads one chunk ahead by itself, which is not wanted here.
   */
  open(signal: AbortSignal, pulled: () => Promise<void>): Promise<OpenedStream>;
  /**
   * True if the response announced a length: the stream then carries no null packets, and fails instead of ending when `ended`
   * fires.
   */
  readonly hasLength: boolean;
  /** Called at each pull. */
  touched(): void;
  /** Called once, when the stream has ended or was canceled. */
  closed(): void;
}

/**
 * Returns the body of a response: remuxed media for as long as its session lasts. Each pull asks for one chunk, never earlier.
 * Until the first chunk arrives the stream carries null packets, so that players keep the connection, unless it has a length. It is a
 * byte stream: chunks are copied into the buffer of the consumer, so that their memory is used again.
 */
export function transportStream(options: TransportStreamOptions): ReadableStream<Uint8Array> {
  const { clock, ended, open, hasLength, touched, closed } = options;
  let isOver = false;
  let hasStarted = hasLength;
  const over = new AbortController();
  let pulled = deferred();
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  let takeBack: PlayerMedia["release"];
  /** The chunk that is delivered, and its part that has not been delivered yet. */
  let chunk: Uint8Array = NO_BYTES;
  let rest: Uint8Array = NO_BYTES;
  /** Stops all work behind the stream, down to the requests of the swarm. It may have failed already. */
  const release = () => reader?.cancel().catch(() => {});
  const read = async () => {
    pulled.resolve();
    if (!reader) {
      const opened = await open(over.signal, () => pulled.promise);
      takeBack = opened.release;
      reader = opened.stream.getReader();
      if (isOver) release();
    }
    const got = await reader.read();
    pulled = deferred();
    return got;
  };
  let next: ReturnType<typeof read> | undefined;
  /** Returns false if the stream was over before. A session outlives many connections, so the listener is removed. */
  const finish = (): boolean => {
    if (isOver) return false;
    isOver = true;
    ended.removeEventListener("abort", stop);
    over.abort(new SluiceError("cancelled", "the stream was closed"));
    release();
    closed();
    return true;
  };
  const close = (controller: ReadableByteStreamController) => {
    controller.close();
    controller.byobRequest?.respond(0); // A pending buffer must be returned empty (Streams standard, 4.7.3).
  };
  const deliver = ({ byobRequest }: ReadableByteStreamController) => {
    const view = byobRequest!.view as Uint8Array;
    const length = Math.min(view.byteLength, rest.length);
    new Uint8Array(view.buffer, view.byteOffset, length).set(rest.subarray(0, length));
    rest = rest.subarray(length);
    if (rest.length === 0) {
      takeBack?.(chunk);
      chunk = NO_BYTES;
    }
    byobRequest!.respond(length);
  };
  let stop = () => {};
  return new ReadableStream(
    {
      type: "bytes",
      autoAllocateChunkSize: CHUNK_BYTES,
      start(controller) {
        stop = () => {
          if (!finish()) return;
          if (hasLength) controller.error(ended.reason);
          else close(controller);
        };
        ended.addEventListener("abort", stop);
      },
      async pull(controller) {
        touched();
        try {
          while (rest.length === 0) {
            next ??= read();
            if (!hasStarted && !(await resolvesWithin(next, clock, KEEP_ALIVE_MS))) {
              rest = nullPackets(KEEP_ALIVE_PACKETS);
              break;
            }
            const { done, value } = await next;
            next = undefined;
            hasStarted = true;
            if (done && finish()) close(controller);
            if (done || isOver) return;
            chunk = rest = value;
          }
          if (!isOver) deliver(controller);
        } catch (thrown) {
          if (finish()) controller.error(thrown);
        }
      },
      cancel() {
        finish();
      },
    },
    { highWaterMark: 0 },
  );
}

const NO_BYTES = new Uint8Array(0);
