import { DecodeError, SluiceError } from "../../src/base/errors.ts";
import { bodyChunks } from "../http/request-body.ts";
import { formTooLarge, MULTIPART_LIMITS, MultipartParser, type MultipartPart } from "./multipart-parser.ts";
import { clipped } from "./params.ts";

/** Returns the boundary of a content type (RFC 2046 5.1.1). Throws `bad_parameter`. */
export function boundaryOf(contentType: string): string {
  const match = /;\s*boundary=(?:"([^"]*)"|([^\s;"]+))\s*(?:;|$)/i.exec(contentType);
  const boundary = match?.[1] ?? match?.[2] ?? "";
  if (/^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/.test(boundary)) return boundary;
  throw new SluiceError(
    "bad_parameter",
    `content-type: expected multipart/form-data with a boundary of 1 to 70 characters, got "${clipped(contentType)}"`,
  );
}

/**
 * Parses a form while it arrives. `expectedBytes` is the `content-length` or 0, and allows a single allocation for a file.
 * Rejects with `bad_parameter`, `too_large` or `cancelled`.
 */
export async function readMultipart(
  body: ReadableStream<Uint8Array>,
  options: { readonly boundary: string; readonly expectedBytes: number },
): Promise<readonly MultipartPart[]> {
  if (options.expectedBytes > MULTIPART_LIMITS.bodyBytes) throw formTooLarge();
  const parser = new MultipartParser(options.boundary, options.expectedBytes);
  try {
    for await (const chunk of bodyChunks(body)) parser.push(chunk);
    return parser.end();
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    throw new SluiceError("bad_parameter", thrown.message, { cause: thrown });
  }
}
