import type { AbortSignalLike } from "../base/byte-source.ts";
import type { MediaTrack } from "./contract.ts";
import type { SegmentBounds } from "./packet-reader.ts";

/** The text subtitles of a file. */
export interface SubtitleSource {
  readonly tracks: readonly MediaTrack[];
  /** The cues of a track that are to be seen within a time, as a WebVTT file. Rejects with `SluiceError`. */
  webvtt(track: number, bounds: SegmentBounds, signal?: AbortSignalLike): Promise<string>;
}

/** For files without text subtitles. */
export const NO_SUBTITLES: SubtitleSource = {
  tracks: [],
  webvtt: () => Promise.reject(new Error("there are no subtitles")),
};
