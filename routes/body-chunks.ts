import { SluiceError } from "../src/base/errors.ts";

/**
 * So much is still taken of a body that was refused: a sender who is cut off while he writes never reads why. As much
 * again as the largest upload.
 */
const DRAIN_BYTES = 64_000_000;
/** What a chunk counts at least, so that a body of tiny ones costs no more work. */
const CHUNK_COST_BYTES = 1024;

/**
 * The chunks of a request's body. Who stops before its end (by a `throw` too) waits until the rest is thrown away, or,
 * where that is too much, the connection is ended. Rejects with `cancelled` where the sender goes away.
 */
export async function* bodyChunks(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  const reader = body.getReader();
  let isOver = false;
  try {
    while (true) {
      const chunk = await reader.read().catch((cause) => {
        isOver = true;
        throw new SluiceError("cancelled", "the connection ended within the body", { cause });
      });
      isOver = chunk.done;
      if (chunk.value === undefined) return;
      yield chunk.value;
    }
  } finally {
    if (!isOver) await drain(reader);
  }
}

async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  let left = DRAIN_BYTES;
  while (left > 0) {
    const chunk = await reader.read().catch(() => undefined);
    if (chunk?.value === undefined) return;
    left -= Math.max(chunk.value.length, CHUNK_COST_BYTES);
  }
  await reader.cancel("a body that is too large").catch(() => {});
}
