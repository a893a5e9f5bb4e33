import type { BodyReader } from "../transfer/segment-source.ts";

/** Size of a read: large enough that its overhead is negligible, small compared to the buffers of sockets. */
const CHUNK_BYTES = 256 * 1024;

/** Options of {@link bodyStream}. */
export interface BodyStreamOptions {
  /** Fails the stream when it fires, because the response announced a length. */
  readonly ended: AbortSignal;
  /** Runs one read on behalf of the player: renews its lease, and limits the wait. */
  read(work: () => Promise<number>): Promise<number>;
  /** Called once, when the stream has ended or was canceled. */
  closed(): void;
}

/** Returns the bytes of a reader as a stream for one response. Each pull is one read. */
export function bodyStream(reader: BodyReader, options: BodyStreamOptions): ReadableStream<Uint8Array> {
  const { ended, read, closed } = options;
  let isOver = false;
  const finish = (): boolean => {
    if (isOver) return false;
    isOver = true;
    ended.removeEventListener("abort", stop);
    reader.close();
    closed();
    return true;
  };
  let stop = () => {};
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        stop = () => {
          if (finish()) controller.error(ended.reason);
        };
        ended.addEventListener("abort", stop);
      },
      async pull(controller) {
        const chunk = new Uint8Array(CHUNK_BYTES);
        try {
          const length = await read(async () => reader.read(chunk));
          if (isOver) return;
          if (length > 0) controller.enqueue(chunk.subarray(0, length));
          else if (finish()) controller.close();
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
