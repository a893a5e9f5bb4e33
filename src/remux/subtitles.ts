import type { AbortSignalLike } from "../base/byte-source.ts";
import type { MediaTrack } from "./contract.ts";
import type { SegmentBounds } from "./packet-reader.ts";
import { TS_BASE_SECONDS } from "./ts-muxer.ts";

/** The time of the media (90 kHz) at which the clock of subtitles shows zero: they count as the file does. */
export const SUBTITLE_OFFSET_TICKS = TS_BASE_SECONDS * 90_000;

/** A line that is longer than a page, or a page that is longer than a book, is no subtitle. */
export const TEXT_LIMIT_BYTES = 64 * 1024;
export const CUES_LIMIT = 10_000;

/** The text subtitles of a file. */
export interface SubtitleSource {
  readonly tracks: readonly MediaTrack[];
  /** The cues of `tracks[track]` that begin within a time, as a WebVTT file. Rejects with `SluiceError`. */
  webvtt(track: number, bounds: SegmentBounds, signal?: AbortSignalLike): Promise<string>;
}
