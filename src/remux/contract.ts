import type { RandomAccess } from "../base/byte-source.ts";
import type { SluiceError } from "../base/errors.ts";

/** What a player sees of one media file: its tracks, its index, and segments made on demand.
 * One for each viewer or for all: it keeps no position. Segments made in any order are identical. */
export interface Media {
  readonly container: "mp4" | "matroska" | "mpegts";
  readonly durationSeconds: number;
  readonly tracks: readonly MediaTrack[];
  /** Where each segment lies, in order, without gaps; cut at keyframes (by time for audio alone). */
  readonly segments: readonly SegmentTimes[];
  /** Undefined where MPEG-TS can carry the video and an audio track (others it cannot carry are left out); else why
   * not, naming the codec. */
  readonly tsProblem: SluiceError | undefined;
  /** Undefined where fMP4 can carry the video and an audio track (one only, the first, is written); else why not. */
  readonly fmp4Problem: SluiceError | undefined;
  /** Segment `index` as whole 188-byte packets, beginning with PAT and PMT; concatenating all of them in order is a
   * valid transport stream (continuity counters included). Rejects with `SluiceError`. */
  tsSegment(index: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
  /** The fMP4 initialisation segment (`ftyp` + `moov`), for `EXT-X-MAP`. */
  fmp4Init(signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
  /** Segment `index` as `moof` + `mdat`. */
  fmp4Segment(index: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
  /** Subtitle track `trackIndex` (into `tracks`) from segment `index`, as a WebVTT file. */
  webvttSegment(trackIndex: number, index: number, signal?: AbortSignal): Promise<string>;
  /** Frees what it holds; pending calls reject with `SluiceError("cancelled")`. */
  close(): void;
}

export interface MediaTrack {
  readonly kind: "video" | "audio" | "subtitle";
  /** Short name: `h264`, `hevc`, `aac`, `mp2`, `mp3`, `ac3`, `eac3`, `vp9`, `av1`, `opus`, `flac`, `subrip`, `webvtt`, … */
  readonly codec: string;
  /** The RFC 6381 string for `CODECS`, where known. */
  readonly codecString: string | undefined;
  /** ISO 639-2 (three letters), `und` where unknown. */
  readonly language: string;
  readonly title: string | undefined;
  readonly isDefault: boolean;
  readonly width?: number;
  readonly height?: number;
}

export interface SegmentTimes {
  readonly startSeconds: number;
  readonly durationSeconds: number;
}

export interface OpenMediaOptions {
  /** ISO 639-1 or 639-2: this language's audio track comes first and is the default one. */
  readonly preferredAudioLanguage?: string;
  /** Wished length of a segment, in seconds (default 6). */
  readonly targetSeconds?: number;
  readonly signal?: AbortSignal;
}

/** Reads the head (and the index) of a media file; rejects with `SluiceError` where it is none. Lives in `open-media.ts`. */
export type OpenMedia = (source: RandomAccess, options?: OpenMediaOptions) => Promise<Media>;
