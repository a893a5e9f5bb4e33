import type { ByteRange } from "../src/base/range.ts";

/** The part of a resource that a Range header requests. */
export type RequestedRange = "whole" | "unsatisfiable" | ByteRange;

/**
 * Parses a Range header for a resource of `size` bytes (RFC 9110 14.1.2): one range of bytes with either end open. As the
 * RFC requires, an invalid range is ignored (`whole`). Several ranges at once, which no player sends, are ignored too.
 */
export function parseRange(header: string | undefined, size: number): RequestedRange {
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

/** Builds a `Content-Range` header, whose last byte is inclusive; without a range, the one of a 416 response. */
export function contentRange(range: ByteRange | undefined, size: number): string {
  return range ? `bytes ${range.start}-${range.end - 1}/${size}` : `bytes */${size}`;
}
