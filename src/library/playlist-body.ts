import { SluiceError } from "../base/errors.ts";
import { inflated } from "../outbound/inflated.ts";
import { pause } from "./item-pause.ts";

/** Lists of 200,000 entries have some 40 MiB; what is larger is no list that anybody scrolls through. */
export const MAX_LIST_BYTES = 64 * 1024 * 1024;
/** What the reader of lists is given at once: a few milliseconds of work. */
const BLOCK_BYTES = 64 * 1024;

/**
 * Reads a list whole, as blocks of at most 64 KiB, decompressed where it is gzip (known by its first bytes). Rejects with
 * `too_large`, with `not_a_playlist` where the compression is broken or a bomb, and with whatever breaks the body.
 */
export async function readListBody(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): Promise<Uint8Array[]> {
  const { head, rest } = await peek(body, signal);
  if (!(head[0] === 0x1f && head[1] === 0x8b)) return gathered(rest);
  try {
    return await gathered(inflated(rest, false, MAX_LIST_BYTES, signal));
  } catch (thrown) {
    // What came of the network's own faults keeps its name.
    const isOurs = thrown instanceof SluiceError && !/compress|larger/.test(thrown.message);
    if (isOurs || signal.aborted) throw thrown;
    const why = thrown instanceof SluiceError ? thrown.message : "its gzip compression is broken";
    throw new SluiceError("not_a_playlist", `the list cannot be unpacked: ${why}`, { cause: thrown });
  }
}

/** The first bytes of a stream, and the stream with them. Cancelling goes on to the source, and so does the signal. */
async function peek(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): Promise<{ head: Uint8Array; rest: ReadableStream<Uint8Array> }> {
  const reader = body.getReader();
  const seen: Uint8Array[] = [];
  const head: number[] = [];
  while (head.length < 2) {
    signal.throwIfAborted();
    const { done, value } = await reader.read();
    if (done) break;
    seen.push(value);
    head.push(...value.subarray(0, 2));
  }
  const rest = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (signal.aborted) {
          await reader.cancel(signal.reason).catch(() => {}); // The reason is thrown right here.
          throw signal.reason;
        }
        const next = seen.shift() ?? (await reader.read()).value;
        if (next) controller.enqueue(next);
        else controller.close();
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return { head: new Uint8Array(head), rest };
}

/**
 * Copied into blocks of one size, where it does not come in such: a body may come a packet at a time, or all at once. One
 * that is here already lets others have their turn at each MiB.
 */
async function gathered(stream: ReadableStream<Uint8Array>): Promise<Uint8Array[]> {
  const blocks: Uint8Array[] = [];
  let block = new Uint8Array(BLOCK_BYTES);
  let filled = 0;
  let length = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > MAX_LIST_BYTES) {
      const error = new SluiceError(
        "too_large",
        `a list may have ${MAX_LIST_BYTES / 1024 / 1024} MiB at most`,
      );
      await reader.cancel(error).catch(() => {}); // The error at hand says more than that of cancelling.
      throw error;
    }
    if ((length - value.length) >> 20 < length >> 20) await pause();
    if (filled === 0 && isBlock(value)) {
      blocks.push(value);
      continue;
    }
    for (let at = 0; at < value.length; ) {
      const some = value.subarray(at, at + BLOCK_BYTES - filled);
      block.set(some, filled);
      at += some.length;
      filled += some.length;
      if (filled < BLOCK_BYTES) continue;
      blocks.push(block);
      block = new Uint8Array(BLOCK_BYTES);
      filled = 0;
    }
  }
  if (filled > 0) blocks.push(block.slice(0, filled));
  return blocks;
}

/** Whether a chunk can stay as it is: not much smaller than a block, and no part of some larger memory. */
function isBlock(chunk: Uint8Array): boolean {
  return (
    chunk.length <= BLOCK_BYTES && chunk.length >= BLOCK_BYTES / 2 && chunk.length === chunk.buffer.byteLength
  );
}
