import { readerStream } from "../transfer/reader-stream.ts";
import type { BodyReader } from "../transfer/segment-source.ts";

/** Options of {@link bodyStream}. */
export interface BodyStreamOptions {
  /** Fails the stream when it fires, because the response announced a length. */
  readonly ended: AbortSignal;
  /** Runs one read on behalf of the player: renews its lease, and limits the wait. */
  read(work: () => Promise<number>): Promise<number>;
  /** Called once, when the stream has ended or was canceled. */
  closed(): void;
}

/** Returns the bytes of a reader as a byte stream for one response. Each pull is one read. */
export function bodyStream(reader: BodyReader, options: BodyStreamOptions): ReadableStream<Uint8Array> {
  const { ended, read, closed } = options;
  let isOver = false;
  const finish = () => {
    if (isOver) return;
    isOver = true;
    ended.removeEventListener("abort", finish);
    reader.close();
    closed();
  };
  ended.addEventListener("abort", finish);
  return readerStream({
    async read(into) {
      try {
        ended.throwIfAborted();
        const length = await read(async () => reader.read(into));
        ended.throwIfAborted();
        if (length === 0) finish();
        return length;
      } catch (thrown) {
        finish();
        throw thrown;
      }
    },
    close: finish,
  });
}
