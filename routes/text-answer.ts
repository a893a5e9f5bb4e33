import type { Context } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { encodeUtf8 } from "../src/base/utf8.ts";

/**
 * An answer of text, with its length: some small players do not take a body of unknown length. Nothing of the kind may
 * be cached: every one is about this moment.
 */
export function textAnswer(c: Context, text: string, type: string, status = 200): Response {
  const bytes = encodeUtf8(text);
  return c.body(bytes, status as ContentfulStatusCode, {
    "content-type": type,
    "content-length": String(bytes.length),
    "cache-control": "no-store",
  });
}
