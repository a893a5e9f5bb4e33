import type { Context } from "hono";
import type { ByteRange } from "../src/base/range.ts";

/** The part of a resource that a Range header requests. */
type RequestedRange = "whole" | "unsatisfiable" | ByteRange;

/**
 * Parses a Range header for a resource of `size` bytes (RFC 9110 14.1.2): one range of bytes with either end open. As the
 * RFC requires, an invalid range is ignored (`whole`). Several ranges at once, which no player sends, are ignored too.
 */
function parseRange(header: string | undefined, size: number): RequestedRange {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header ?? "");
  if (!match || (match[1] === "" && match[2] === "")) return "whole";
  if (match[1] === "") {
    const length = Math.min(Number(match[2]), size);
    return length === 0 ? "unsatisfiable" : { start: size - length, end: size };
  }
  const start = Number(match[1]);
  if (match[2] !== "" && Number(match[2]) < start) return "whole";
  if (start >= size) return "unsatisfiable";
  return { start, end: match[2] === "" ? size : Math.min(Number(match[2]) + 1, size) };
}

/** How a request for a resource of known size is answered. */
export interface RangeAnswer {
  readonly status: 200 | 206 | 416;
  readonly headers: Readonly<Record<string, string>>;
  /** The bytes of the body; undefined if it is empty. */
  readonly range: ByteRange | undefined;
}

/** Answers the Range header of a request, unless `If-Range` names another entity tag (RFC 9110 13.1.5). `etag` is quoted. */
export function answerRange(c: Context, size: number, etag?: string): RangeAnswer {
  const condition = c.req.header("if-range");
  const asked = condition === undefined || condition === etag ? c.req.header("range") : undefined;
  const requested = parseRange(asked, size);
  const headers = { "accept-ranges": "bytes", ...(etag !== undefined && { etag }) };
  if (requested === "unsatisfiable") {
    const none = { ...headers, "content-range": contentRange(undefined, size) };
    return { status: 416, headers: none, range: undefined };
  }
  const isWhole = requested === "whole";
  const range = isWhole ? { start: 0, end: size } : requested;
  const length = { "content-length": String(range.end - range.start) };
  return {
    status: isWhole ? 200 : 206,
    headers: { ...headers, ...length, ...(!isWhole && { "content-range": contentRange(range, size) }) },
    range: c.req.method === "HEAD" || size === 0 ? undefined : range,
  };
}

/** Builds a `Content-Range` header, whose last byte is inclusive; without a range, the one of a 416 response. */
function contentRange(range: ByteRange | undefined, size: number): string {
  return range ? `bytes ${range.start}-${range.end - 1}/${size}` : `bytes */${size}`;
}
