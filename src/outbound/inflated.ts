import { SluiceError } from "../base/errors.ts";
import { tooLarge } from "./outbound-body.ts";

/** What decompression may make of a body at most, whatever the caller allows. */
const MAX_INFLATED_BYTES = 64 * 1024 * 1024;
/** Honest text shrinks to a tenth or so; a bomb to a thousandth. Small bodies may shrink as they like. */
const MAX_RATIO = 100;
const RATIO_FROM_BYTES = 1024 * 1024;
/** A decompressor may swell one write into a single chunk, so it gets little at a time: 16 MiB at deflate's worst. */
const SLICE_BYTES = 16 * 1024;

/** A compressed body as it was, at most `limitBytes` of it, read a slice at a time as its reader pulls. Errors with
 * `url_refused` where it is too large or a bomb, `url_unreachable` where it is not properly compressed. */
export function inflated(
  packed: ReadableStream<Uint8Array>,
  isDeflate: boolean,
  limitBytes: number,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  const limit = Math.min(limitBytes, MAX_INFLATED_BYTES);
  const source = packed.getReader();
  const progress: Progress = { fedBytes: 0, failure: undefined };
  let length = 0;
  let inflater: ReadableStreamDefaultReader<Uint8Array> | undefined;
  let writer: WritableStreamDefaultWriter<BufferSource> | undefined;

  const begin = async () => {
    const head = await firstBytes(source);
    if (head.length === 0) return undefined;
    const stream = new DecompressionStream(isDeflate ? deflateFormat(head) : "gzip");
    writer = stream.writable.getWriter();
    // Its failure reaches the reader, which reports it.
    feed(writer, head, source, progress).catch(() => {});
    return stream.readable.getReader();
  };
  const end = (thrown: unknown) => {
    // Not waited for: a runtime may keep the promise until the write at hand ends, which nobody reads any more. It may
    // also have failed already, with this very error.
    writer?.abort(thrown).catch(() => {});
    source.cancel(thrown).catch(() => {});
  };

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          inflater ??= await begin();
          if (!inflater) return controller.close();
          const { done, value } = await inflater.read();
          if (done) return controller.close();
          length += value.length;
          if (length > limit) throw tooLarge(limit);
          if (length > RATIO_FROM_BYTES && length > MAX_RATIO * progress.fedBytes)
            throw new SluiceError(
              "url_refused",
              `the body swells more than ${MAX_RATIO} times when decompressed`,
            );
          controller.enqueue(value);
        } catch (thrown) {
          end(thrown);
          if (thrown instanceof SluiceError || signal.aborted) throw thrown;
          if (progress.failure) throw progress.failure.thrown;
          throw new SluiceError("url_unreachable", "the body is not properly compressed", { cause: thrown });
        }
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
}

interface Progress {
  fedBytes: number;
  /** What went wrong on the way here, which is not the compression's fault. */
  failure: { readonly thrown: unknown } | undefined;
}

/** The first two bytes at least, where there are so many. */
async function firstBytes(source: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  let head = new Uint8Array();
  while (head.length < 2) {
    const { done, value } = await source.read();
    if (done) break;
    const longer = new Uint8Array(head.length + value.length);
    longer.set(head);
    longer.set(value, head.length);
    head = longer;
  }
  return head;
}

async function feed(
  writer: WritableStreamDefaultWriter<BufferSource>,
  head: Uint8Array,
  source: ReadableStreamDefaultReader<Uint8Array>,
  progress: Progress,
): Promise<void> {
  let packed: Uint8Array | undefined = head;
  while (packed) {
    for (let at = 0; at < packed.length; at += SLICE_BYTES) {
      const slice = packed.slice(at, at + SLICE_BYTES);
      await writer.ready;
      progress.fedBytes += slice.length;
      await writer.write(slice);
    }
    packed = await nextOf(source, writer, progress);
  }
  await writer.close();
}

async function nextOf(
  source: ReadableStreamDefaultReader<Uint8Array>,
  writer: WritableStreamDefaultWriter<BufferSource>,
  progress: Progress,
): Promise<Uint8Array | undefined> {
  try {
    return (await source.read()).value;
  } catch (thrown) {
    progress.failure = { thrown };
    await writer.abort(thrown);
    throw thrown;
  }
}

/** HTTP's `deflate` is the zlib format (RFC 9110 8.4.1.2), yet some servers send the bare one. */
function deflateFormat(head: Uint8Array): CompressionFormat {
  const isZlib = (head[0]! & 0x0f) === 8 && ((head[0]! << 8) | (head[1] ?? 0)) % 31 === 0;
  return isZlib ? "deflate" : "deflate-raw";
}
