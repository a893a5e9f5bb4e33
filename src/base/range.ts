/** Bytes `start` (inclusive) to `end` (exclusive). Half-open everywhere but in HTTP headers. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** How many bytes a range holds. */
export function rangeLength(range: ByteRange): number {
  return range.end - range.start;
}

/** What two ranges share, or undefined where they share nothing. */
export function intersect(a: ByteRange, b: ByteRange): ByteRange | undefined {
  const start = Math.max(a.start, b.start);
  const end = Math.min(a.end, b.end);
  return start < end ? { start, end } : undefined;
}
