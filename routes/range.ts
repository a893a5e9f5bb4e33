import type { ByteRange } from "../src/base/range.ts";

/** What a Range header asks of `size` bytes. */
export type RangeWish = "whole" | "unsatisfiable" | ByteRange;

/**
 * Reads a Range header (RFC 9110 14.1.2): one range of bytes, with either end open. What is no such range is ignored,
 * as the RFC asks; so are several ranges at once, which no player sends.
 */
export function parseRange(header: string | undefined, size: number): RangeWish {
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

/** The `Content-Range` of an answer; without a range, of a refusal. Its last byte is inclusive. */
export function contentRange(range: ByteRange | undefined, size: number): string {
  return range ? `bytes ${range.start}-${range.end - 1}/${size}` : `bytes */${size}`;
}
