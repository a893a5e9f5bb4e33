/** Bytes `start` (inclusive) to `end` (exclusive). Half-open everywhere but in HTTP headers. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** How many bytes a range holds. */
export function rangeLength(range: ByteRange): number {
  return range.end - range.start;
}
