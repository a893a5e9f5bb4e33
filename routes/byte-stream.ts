/** So much is handed out for each pull. */
const CHUNK_BYTES = 256 * 1024;

/**
 * A body of views on `bytes`, pulled. Given the array itself, a response would copy it, and a player that does not read
 * would keep its own copy of what all players share.
 */
export function byteStream(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (at < bytes.length) controller.enqueue(bytes.subarray(at, at + CHUNK_BYTES));
        at += CHUNK_BYTES;
        if (at >= bytes.length) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}
