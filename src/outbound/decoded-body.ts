import { SluiceError } from "../base/errors.ts";
import type { OutboundResponse } from "../runtime/contract.ts";
import { bodyTooLarge, inflated } from "./inflate.ts";
import type { OpenOptions } from "./request.ts";

/** Removes the content encoding of a response body and limits its length. Rejects, or errors while it is read, with
 * `url_refused` if the body is larger than `limitBytes`, `url_unreachable` if its encoding is not supported. */
export async function decodedBody(
  response: OutboundResponse,
  { limitBytes, decode = true, range }: OpenOptions,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const announced = Number(response.headers.get("content-length") ?? 0);
  const encoding = response.headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  const mayDecode = decode && range === undefined;
  try {
    if (announced > limitBytes) throw bodyTooLarge(limitBytes);
    switch (encoding) {
      case "":
      case "identity":
        return limited(response.body, limitBytes);
      case "gzip":
      case "x-gzip":
      case "deflate":
        if (mayDecode)
          return inflated(response.body, encoding === "deflate" ? "deflate" : "gzip", limitBytes, signal);
    }
    // A list of encodings is refused too: it nests decompression bombs, and legitimate servers use one encoding.
    const what = `the server used the content encoding ${encoding.slice(0, 40)}, which was not requested`;
    throw new SluiceError("url_unreachable", what);
  } catch (thrown) {
    await response.body.cancel(thrown).catch(() => {}); // `thrown` is the more useful error.
    throw thrown;
  }
}

/** Passes `body` through and errors once it exceeds `limitBytes`. */
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
        const error = bodyTooLarge(limitBytes);
        await reader.cancel(error).catch(() => {}); // `error` is the more useful one.
        throw error;
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
