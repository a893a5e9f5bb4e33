import type { Media } from "../remux/contract.ts";
import type { SegmentName } from "./engine.ts";
import type { SegmentBytes } from "./segment-cache.ts";

/**
 * CHOICE(segment-number): a segment's name carries no session key, yet two sessions of one infohash may play other
 * files or languages, and each segment must renew the right lease. So the number is the session's ordinal in millions,
 * plus the index. The first session of a transfer has ordinal 0: its segments are `0.ts`, `1.ts` …
 */
const SEGMENTS_PER_SESSION = 1_000_000;

/** The number in the name of segment `index` of the session with this ordinal. Broadcasts number their segments as they
 * like: of their numbers the last six digits are used. */
export function segmentNumber(ordinal: number, index: number): number {
  return ordinal * SEGMENTS_PER_SESSION + (index % SEGMENTS_PER_SESSION);
}

/** The inverse of {@link segmentNumber}. */
export function splitSegmentNumber(number: number): { ordinal: number; index: number } {
  return { ordinal: Math.floor(number / SEGMENTS_PER_SESSION), index: number % SEGMENTS_PER_SESSION };
}

/** The name under which a made segment, or a part of one, is shared: whoever plays the same source gets the same bytes. */
export function segmentKey(
  source: string,
  kind: SegmentName["kind"] | `p${number}`,
  index: number,
  track: number,
): string {
  return `${source}/${track}/${index}.${kind}`;
}

/** Makes one segment. Rejects with `SluiceError`. */
export async function makeSegment(
  media: Media,
  kind: SegmentName["kind"],
  index: number,
  track: number,
  signal: AbortSignal,
): Promise<SegmentBytes> {
  switch (kind) {
    case "ts":
      return media.tsSegment(index, signal);
    case "m4s":
      return media.fmp4Segment(index, signal);
    case "mp4":
      return media.fmp4Init(signal);
    case "vtt":
      return new TextEncoder().encode(await media.webvttSegment(track, index, signal));
  }
}
