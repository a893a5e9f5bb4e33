import { concatBytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { OutboundResponse } from "../runtime/contract.ts";

/** What decompression may make of a body at most, whatever the caller allows. */
const MAX_INFLATED_BYTES = 64 * 1024 * 1024;
/** Honest text shrinks to a tenth or so; a bomb to a thousandth. Small bodies may shrink as they like. */
const MAX_RATIO = 100;
const RATIO_FROM_BYTES = 1024 * 1024;
/** A decompressor may swell one write into a single chunk, so it gets little at a time: 16 MiB at deflate's worst. */
const SLICE_BYTES = 16 * 1024;

/** Reads a body whole, decompressed, at most `limitBytes` of it. Rejects with `url_refused` where it is too large,
 * `url_unreachable` where its encoding is broken or unknown. */
export async function readOutboundBody(
  response: OutboundResponse,
  limitBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const announced = Number(response.headers.get("content-length") ?? 0);
  const encoding = response.headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  try {
    if (announced > limitBytes) throw tooLarge(limitBytes);
    switch (encoding) {
      case "":
      case "identity":
        return await readPlain(response.body, limitBytes, signal);
      case "gzip":
      case "x-gzip":
        return await readInflated(response.body, () => "gzip", limitBytes, signal);
      case "deflate":
        return await readInflated(response.body, deflateFormat, limitBytes, signal);
      default:
        // A chain of encodings is how bombs are nested; servers that mean well send one.
        throw new SluiceError(
          "url_unreachable",
          `the server encodes with ${encoding.slice(0, 40)}, which was not asked for`,
        );
    }
  } catch (thrown) {
    await response.body.cancel(thrown).catch(() => {}); // The error at hand says more than that of cancelling.
    throw thrown;
  }
}

async function readPlain(
  body: ReadableStream<Uint8Array>,
  limitBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunksOf(body, signal)) {
    length += chunk.length;
    if (length > limitBytes) throw tooLarge(limitBytes);
    parts.push(chunk);
  }
  return concatBytes(parts);
}

async function readInflated(
  body: ReadableStream<Uint8Array>,
  format: (head: Uint8Array) => CompressionFormat,
  limitBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const limit = Math.min(limitBytes, MAX_INFLATED_BYTES);
  const packed = await readPlain(body, limit, signal);
  if (packed.length === 0) return packed;
  const inflater = new DecompressionStream(format(packed));
  const writer = inflater.writable.getWriter();
  const progress = { fedBytes: 0 };
  // Its failure reaches the reader below, which reports it.
  feed(writer, packed, progress).catch(() => {});
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of chunksOf(inflater.readable, signal)) {
      length += chunk.length;
      if (length > limit) throw tooLarge(limit);
      if (length > RATIO_FROM_BYTES && length > MAX_RATIO * progress.fedBytes) {
        throw new SluiceError(
          "url_refused",
          `the body swells more than ${MAX_RATIO} times when decompressed`,
        );
      }
      parts.push(chunk);
    }
  } catch (thrown) {
    // Not waited for: a runtime may keep the promise until the write at hand ends, which nobody reads any more. It may
    // also have failed already, with this very error.
    writer.abort(thrown).catch(() => {});
    if (thrown instanceof SluiceError || signal.aborted) throw thrown;
    throw new SluiceError("url_unreachable", "the body is not properly compressed", { cause: thrown });
  }
  return concatBytes(parts);
}

async function feed(
  writer: WritableStreamDefaultWriter<BufferSource>,
  packed: Uint8Array<ArrayBuffer>,
  progress: { fedBytes: number },
): Promise<void> {
  for (let at = 0; at < packed.length; at += SLICE_BYTES) {
    const slice = packed.subarray(at, at + SLICE_BYTES);
    await writer.ready;
    progress.fedBytes = at + slice.length;
    await writer.write(slice);
  }
  await writer.close();
}

/** HTTP's `deflate` is the zlib format (RFC 9110 8.4.1.2), yet some servers send the bare one. */
function deflateFormat(head: Uint8Array): CompressionFormat {
  const isZlib = (head[0]! & 0x0f) === 8 && ((head[0]! << 8) | (head[1] ?? 0)) % 31 === 0;
  return isZlib ? "deflate" : "deflate-raw";
}

/** The chunks of a stream; ends the stream when the signal fires or the consumer stops. */
async function* chunksOf(
  stream: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  const cancel = () => void reader.cancel(signal.reason).catch(() => {}); // The read in progress reports the reason.
  signal.addEventListener("abort", cancel, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const { done, value } = await reader.read();
      signal.throwIfAborted();
      if (done) return;
      yield value;
    }
  } finally {
    signal.removeEventListener("abort", cancel);
    reader.releaseLock();
  }
}

function tooLarge(limitBytes: number): SluiceError {
  return new SluiceError("url_refused", `the body is larger than ${limitBytes} bytes`);
}
