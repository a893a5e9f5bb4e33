import type { AbortSignalLike } from "../base/byte-source.ts";
import type { PictureState, SecondsRange } from "../media/picture-subtitles.ts";
import type { TextCue } from "../media/webvtt.ts";
import type { MediaTrack } from "./contract.ts";
import type { SegmentBounds } from "./packet-reader.ts";
import { TS_BASE_SECONDS } from "./ts-mux-input.ts";

/** `MPEGTS` value of the timestamp map (RFC 8216 3.5) for cue time 0, because cues use the file's timeline. */
export const SUBTITLE_OFFSET_TICKS = TS_BASE_SECONDS * 90_000;

/** Limits for hostile files: bytes of one cue, cues of one segment. */
export const TEXT_LIMIT_BYTES = 64 * 1024;
export const CUES_LIMIT = 10_000;

/** The text subtitles of a file. */
export interface SubtitleSource {
  readonly tracks: readonly MediaTrack[];
  /** Returns the cues of `tracks[track]` that begin within `bounds`. Rejects with `SluiceError`. */
  cues(track: number, bounds: SegmentBounds, signal?: AbortSignalLike): Promise<readonly TextCue[]>;
  /** Returns what the pictures of `tracks[track]` show from within `seconds` on. */
  pictures?(track: number, seconds: SecondsRange, signal?: AbortSignalLike): Promise<readonly PictureState[]>;
}
