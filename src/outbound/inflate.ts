import { SluiceError } from "../base/errors.ts";

/** Limit of a decompressed body if the caller sets none. */
const MAX_INFLATED_BYTES = 64 * 1024 * 1024;
/** Text compresses about 10:1, a decompression bomb 1000:1. The ratio of bodies below `RATIO_FROM_BYTES` is not checked. */
const MAX_RATIO = 100;
const RATIO_FROM_BYTES = 1024 * 1024;
/** A decompressor may return one write as a single chunk; at deflate's highest ratio this slice becomes 16 MiB. */
const SLICE_BYTES = 16 * 1024;

/** `deflate`: of HTTP, with or without the head of zlib. `xz`: with dictionaries of at most 64 MiB, whose memory is not returned. */
export type PackedFormat = "gzip" | "deflate" | "xz";

/** Decompresses a body in slices as its reader pulls. Errors with `url_refused` if the result is longer than
 * `limitBytes` or a decompression bomb, `url_unreachable` if the compressed data is invalid. */
export function inflated(
  packed: ReadableStream<Uint8Array>,
  format: PackedFormat,
  limitBytes: number,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  const limit = Number.isFinite(limitBytes) ? limitBytes : MAX_INFLATED_BYTES;
  const source = packed.getReader();
  const progress: Progress = { fedBytes: 0, failure: undefined };
  let length = 0;
  let inflater: ReadableStreamDefaultReader<Uint8Array> | undefined;
  let writer: PackedWriter | undefined;

  const begin = async () => {
    const head = await firstBytes(source);
    if (head.length === 0) return undefined;
    const stream =
      format === "xz"
        ? await openXz()
        : new DecompressionStream(format === "deflate" ? deflateFormat(head) : format);
    writer = stream.writable.getWriter();
    // A failure also reaches the reader of `stream.readable`, which reports it.
    feed(writer, head, source, progress).catch(() => {});
    return stream.readable.getReader();
  };
  const end = (thrown: unknown) => {
    // Not awaited: a runtime may settle the promise only after the pending write, whose output is no longer read. The
    // stream may also have failed with this error already.
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
          if (length > limit) throw bodyTooLarge(limit);
          if (length > RATIO_FROM_BYTES && length > MAX_RATIO * progress.fedBytes)
            throw new SluiceError(
              "url_refused",
              `the body decompresses to more than ${MAX_RATIO} times its size`,
            );
          controller.enqueue(value);
        } catch (thrown) {
          end(thrown);
          if (thrown instanceof SluiceError || signal.aborted) throw thrown;
          if (progress.failure) throw progress.failure.thrown;
          throw new SluiceError("url_unreachable", "the compressed body is invalid", { cause: thrown });
        }
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
}

/** Builds the error for a body that exceeds its limit. */
export function bodyTooLarge(limitBytes: number): SluiceError {
  return new SluiceError("url_refused", `the body is larger than ${limitBytes} bytes`);
}

/** The writable side of a decompressor. */
type PackedWriter = WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;

/** Loads the decompressor of XZ, which few users need. It decompresses one body at a time. */
async function openXz(): Promise<ReadableWritablePair<Uint8Array, Uint8Array<ArrayBuffer>>> {
  // Runtimes differ in the names that they find in a CommonJS module.
  const { default: names, XzReadableStream = names.XzReadableStream } = await import("xz-decompress");
  const { readable, writable } = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array>();
  return { readable: new XzReadableStream(readable), writable };
}

interface Progress {
  fedBytes: number;
  /** An error of the source, as opposed to invalid compressed data. */
  failure: { readonly thrown: unknown } | undefined;
}

/** Reads until at least two bytes have arrived or the source ends. */
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
  writer: PackedWriter,
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
  writer: PackedWriter,
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

/** HTTP's `deflate` means the zlib format (RFC 9110 8.4.1.2), but some servers send raw deflate. */
function deflateFormat(head: Uint8Array): CompressionFormat {
  const isZlib = (head[0]! & 0x0f) === 8 && ((head[0]! << 8) | (head[1] ?? 0)) % 31 === 0;
  return isZlib ? "deflate" : "deflate-raw";
}
