/** Bytes `[start, end)`. Half-open everywhere except in HTTP headers. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Returns the length of a range in bytes. */
export function rangeLength(range: ByteRange): number {
  return range.end - range.start;
}
