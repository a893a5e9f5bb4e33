import { SluiceError } from "../base/errors.ts";
import type { OutboundResponse } from "../runtime/contract.ts";
import { inflated } from "./inflated.ts";

/** How a body is read. */
interface BodyOptions {
  /** The longest body, after decompression, in bytes. */
  readonly limitBytes: number;
  readonly decode?: boolean;
  readonly range?: unknown;
}

/** The body of an answer as it was before it was compressed for the way, at most `limitBytes` of it; pulled, and nothing
 * kept. Throws, and errors, with `url_refused` where it is too large, `url_unreachable` where its encoding is unknown. */
export async function decodedBody(
  response: OutboundResponse,
  { limitBytes, decode = true, range }: BodyOptions,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const announced = Number(response.headers.get("content-length") ?? 0);
  const encoding = response.headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  const mayDecode = decode && range === undefined;
  try {
    if (announced > limitBytes) throw tooLarge(limitBytes);
    switch (encoding) {
      case "":
      case "identity":
        return limited(response.body, limitBytes);
      case "gzip":
      case "x-gzip":
      case "deflate":
        if (mayDecode) return inflated(response.body, encoding === "deflate", limitBytes, signal);
    }
    // A chain of encodings is how bombs are nested; servers that mean well send one.
    const what = `the server encodes with ${encoding.slice(0, 40)}, which was not asked for`;
    throw new SluiceError("url_unreachable", what);
  } catch (thrown) {
    await response.body.cancel(thrown).catch(() => {}); // The error at hand says more than that of cancelling.
    throw thrown;
  }
}

/** The same bytes; errors where there are more than `limitBytes`. */
function limited(body: ReadableStream<Uint8Array>, limitBytes: number): ReadableStream<Uint8Array> {
  if (limitBytes === Number.POSITIVE_INFINITY) return body;
  const reader = body.getReader();
  let length = 0;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        length += value.length;
        if (length <= limitBytes) return controller.enqueue(value);
        const error = tooLarge(limitBytes);
        await reader.cancel(error).catch(() => {}); // As above.
        throw error;
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

/** Why a body is refused. */
export function tooLarge(limitBytes: number): SluiceError {
  return new SluiceError("url_refused", `the body is larger than ${limitBytes} bytes`);
}
