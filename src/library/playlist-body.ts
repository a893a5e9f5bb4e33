import { yieldToLoop } from "../async/event-loop.ts";
import { SluiceError } from "../base/errors.ts";
import { inflated, type PackedFormat } from "../outbound/inflate.ts";

/** A list of 200,000 entries has about 40 MiB. */
export const MAX_LIST_BYTES = 64 * 1024 * 1024;
/** The first bytes of gzip (RFC 1952 2.3.1), and of XZ (The .xz File Format 2.1.1.1). No text begins with them. */
const MAGIC = { gzip: [0x1f, 0x8b], xz: [0xfd, 0x37] } satisfies Partial<Record<PackedFormat, number[]>>;
/** Parsing a block takes a few milliseconds. */
const BLOCK_BYTES = 64 * 1024;

/**
 * Reads a whole list as blocks of at most 64 KiB and decompresses gzip and XZ (detected by the first bytes). Rejects with
 * `too_large`, with `not_a_playlist` if the compressed data is invalid or a bomb, and with the errors of the body.
 */
export async function readListBody(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): Promise<Uint8Array[]> {
  try {
    return await readBlocks(await unzippedBody(body, MAX_LIST_BYTES, signal));
  } catch (thrown) {
    // Errors of the network keep their code.
    const isNetworkError = thrown instanceof SluiceError && !/compress|larger/.test(thrown.message);
    const isTooLarge = thrown instanceof SluiceError && thrown.code === "too_large";
    if (isNetworkError || isTooLarge || signal.aborted) throw thrown;
    const why = thrown instanceof SluiceError ? thrown.message : "its data is invalid";
    throw new SluiceError("not_a_playlist", `the list cannot be decompressed: ${why}`, { cause: thrown });
  }
}

/** Decompresses a body if its first bytes are those of gzip or XZ; errors if it becomes longer than `limitBytes`. */
export async function unzippedBody(
  body: ReadableStream<Uint8Array>,
  limitBytes: number,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const { head, rest } = await peek(body, signal);
  const [format] =
    Object.entries(MAGIC).find(([, magic]) => magic.every((byte, i) => head[i] === byte)) ?? [];
  return format === undefined ? rest : inflated(rest, format as PackedFormat, limitBytes, signal);
}

/** Returns the first two bytes of a stream, and a stream that includes them. `signal` cancels the source. */
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
          await reader.cancel(signal.reason).catch(() => {}); // The reason is thrown below.
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

/** Copies a body of any chunk size into blocks of 64 KiB. Yields to the event loop after each MiB. */
async function readBlocks(stream: ReadableStream<Uint8Array>): Promise<Uint8Array[]> {
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
        `the list is larger than ${MAX_LIST_BYTES / 1024 / 1024} MiB`,
      );
      await reader.cancel(error).catch(() => {}); // `error` is the more useful one.
      throw error;
    }
    if ((length - value.length) >> 20 < length >> 20) await yieldToLoop();
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

/** Returns true if a chunk can be a block without a copy: at least half a block, and not a view on a larger buffer. */
function isBlock(chunk: Uint8Array): boolean {
  return (
    chunk.length <= BLOCK_BYTES && chunk.length >= BLOCK_BYTES / 2 && chunk.length === chunk.buffer.byteLength
  );
}
