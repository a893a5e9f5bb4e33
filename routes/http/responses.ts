import type { Context } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { describeError } from "./errors.ts";

/** The member that holds the value: `response` for session URLs, `result` for control methods. */
type EnvelopeKind = "response" | "result";

/**
 * Serializes JSON with a space after each colon and comma, because deployed health probes search for the exact text
 * `"error": null`. Omits members that are undefined, as `JSON.stringify` does.
 */
export function spacedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}: ${spacedJson(member)}`).join(", ")}}`;
}

/** Builds a success response: `{"response": …, "error": null}`. */
export function success(c: Context, kind: EnvelopeKind, value: unknown): Response {
  return json(c, { [kind]: value, error: null });
}

/** Builds an error response with status 200: JSON clients treat any other status as a broken engine. */
export function failure(
  c: Context,
  kind: EnvelopeKind,
  error: string | { message: string; code: number },
): Response {
  return json(c, { [kind]: null, error });
}

/** CHOICE(api-version): 2 and higher: errors are objects. Missing, 1 or unreadable: errors are strings. */
export function apiVersionOf(text: string | undefined): 1 | 2 | 3 {
  const number = Number(text);
  if (!(number >= 2)) return 1;
  return number === 2 ? 2 : 3;
}

/** Builds the error response of a control method for that `api_version`, with status 200. Throws a bug again. */
export function controlFailure(c: Context, apiVersion: string | undefined, thrown: unknown): Response {
  const error = describeError(thrown);
  if (!error) throw thrown;
  const { text, code } = error;
  return failure(c, "result", apiVersionOf(apiVersion) === 1 ? text : { message: text, code });
}

/**
 * Builds a text response with `content-length`, because some small players reject a body of unknown length. It is never
 * cached: each one describes the current moment.
 */
export function textResponse(c: Context, text: string, type: string, status = 200): Response {
  const bytes = encodeUtf8(text);
  return c.body(bytes, status as ContentfulStatusCode, {
    "content-type": type,
    "content-length": String(bytes.length),
    "cache-control": "no-store",
  });
}

function json(c: Context, value: unknown): Response {
  return textResponse(c, spacedJson(value), "application/json");
}

/** Bytes enqueued for each pull. */
const CHUNK_BYTES = 256 * 1024;

/**
 * Creates a pull stream of views of `bytes`. If a response got the array itself, the runtime would copy it, and each
 * stalled player would hold its own copy of a segment that all players share.
 */
export function byteStream(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (at < bytes.length) controller.enqueue(bytes.subarray(at, at + CHUNK_BYTES));
        at += CHUNK_BYTES;
        if (at >= bytes.length) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Returns the header that makes a browser save a response as a file with this name (RFC 6266, RFC 8187). */
export function attachment(fileName: string): Record<string, string> {
  const name = fileName.toWellFormed();
  // Programs that read only the plain form get the name with unsafe characters replaced.
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  const encoded = encodeURIComponent(name).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16)}`,
  );
  return { "content-disposition": `attachment; filename="${plain}"; filename*=UTF-8''${encoded}` };
}
