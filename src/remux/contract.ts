import type { RandomAccess } from "../base/byte-source.ts";
import type { SluiceError } from "../base/errors.ts";
import type { ByteRange } from "../base/range.ts";
import type { PictureState, SecondsRange } from "../media/picture-subtitles.ts";
import type { TextCue } from "../media/webvtt.ts";
import type { PlannedPieces } from "./piece-stream.ts";

/**
 * One media file: its tracks, its index, and segments made on demand. It keeps no position, so several viewers can share it;
 * a segment has the same bytes in whatever order segments are requested.
 */
export interface Media {
  /** `raw`: a file that is not remuxed, such as AVI; it has no segments. */
  readonly container: "mp4" | "matroska" | "mpegts" | "raw";
  /** The MIME type of the file if players of a continuous stream should get the file itself: music, and `raw`. */
  readonly rawMime: string | undefined;
  readonly durationSeconds: number;
  readonly tracks: readonly MediaTrack[];
  /** The timestamp of time 0 in segments, in ticks of 90 kHz: subtitles refer to it. */
  readonly zeroTicks: number;
  /** The times of all segments, in order, without gaps. Cut at key frames, or by time if there is no video. */
  readonly segments: readonly SegmentTimes[];
  /** The parts in which converted audio is delivered apart from the picture. */
  readonly soundSlices: readonly SoundSlice[];
  /**
   * Why the file cannot be served as MPEG-TS, naming the codec; undefined if MPEG-TS can carry the video, or an audio track of a file
   * without video. Audio tracks that it cannot carry are omitted.
   */
  readonly tsProblem: SluiceError | undefined;
  /** The same for fragmented MP4, which carries the video and the first audio track that it can carry. */
  readonly fmp4Problem: SluiceError | undefined;
  /** The containers that can carry none of the audio tracks: there the picture plays without sound. */
  readonly silentIn: readonly ("ts" | "fmp4")[];
  /**
   * Returns what to read for the segments `[from, to)` and how to remux it; to the end of the file by default. As `ts`: whole
   * 188-byte packets, each segment beginning with PAT and PMT; the segments in order are one valid transport stream. As `fmp4`:
   * `moof` + `mdat` of each segment. Rejects with `SluiceError`.
   */
  remux(
    format: RemuxFormat,
    from: number,
    to?: number,
    signal?: AbortSignal,
    part?: MediaPart,
  ): Promise<Remux>;
  /**
   * Returns the whole file as one MPEG-TS of known size, for players that seek by byte ranges; undefined if the index does not tell the
   * sizes of all frames. Absent for containers whose index never does.
   */
  seekableTs?(signal?: AbortSignal): Promise<SeekableTs | undefined>;
  /** The fMP4 initialisation segment (`ftyp` + `moov`), for `EXT-X-MAP`. */
  fmp4Init(signal?: AbortSignal, part?: MediaPart): Promise<Uint8Array<ArrayBuffer>>;
  /** The audio tracks that each container can deliver apart from the picture, as indexes of `tracks`; none if there is no video. */
  readonly separateAudio: Readonly<Record<RemuxFormat, readonly number[]>>;
  /** Returns the cues of subtitle track `tracks[trackIndex]` that begin within segment `index`. */
  cues(trackIndex: number, index: number, signal?: AbortSignal): Promise<readonly TextCue[]>;
  /** Returns what `tracks[trackIndex]`, subtitles with `isPicture`, shows from within `seconds` on. */
  pictures?(
    trackIndex: number,
    seconds: SecondsRange,
    signal?: AbortSignal,
  ): Promise<readonly PictureState[]>;
  /** Frees all resources. Pending and later calls reject with `SluiceError("cancelled")`. */
  close(): void;
}

/** The containers that segments can have. */
export type RemuxFormat = "ts" | "fmp4";

/** What segments contain: all tracks (the default), the video alone, or the audio track `tracks[audio]` alone, all of it or a slice. */
export type MediaPart = "all" | "video" | { readonly audio: number; readonly slice?: SoundSlice };

/** One of `count` parts of equal duration of a segment. Its audio is converted alone, so a player that seeks waits for it only. */
export interface SoundSlice {
  /** Its position among the slices of all segments. */
  readonly number: number;
  readonly segment: number;
  /** From 0. */
  readonly index: number;
  readonly count: number;
  readonly durationSeconds: number;
}

/** One way from the bytes of a file to a player: `pieceStream(remux).pipeThrough(remux.remuxer)`. */
export interface Remux extends PlannedPieces {
  readonly remuxer: ReadableWritablePair<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>;
}

/** A file as one MPEG-TS. The same bytes have the same position in every request. */
export interface SeekableTs {
  /** Bytes. */
  readonly size: number;
  /** Returns what to read for these bytes, and how to remux it. Reads from the start of the segment. Rejects with `SluiceError`. */
  remux(range: ByteRange, signal?: AbortSignal): Promise<Remux>;
}

export interface MediaTrack {
  readonly kind: "video" | "audio" | "subtitle";
  /** Short name: `h264`, `hevc`, `aac`, `mp2`, `mp3`, `ac3`, `eac3`, `vp9`, `av1`, `opus`, `flac`, `subrip`, `webvtt`, … */
  readonly codec: string;
  /** The RFC 6381 string for the `CODECS` attribute; undefined if unknown. */
  readonly codecString: string | undefined;
  /** ISO 639-2 (three letters); `und` if unknown. */
  readonly language: string;
  readonly title: string | undefined;
  readonly isDefault: boolean;
  /** Audio: the number of channels, if the container states it. */
  readonly channels?: number;
  /** The codec in the file, if the track is converted to another one. */
  readonly convertedFrom?: string;
  /** Subtitles that are not converted to text, such as pictures: listed, and kept in transport streams only. */
  readonly isOpaque?: boolean;
  /** Of these, pictures that {@link Media.pictures} decodes. */
  readonly isPicture?: boolean;
  /** Subtitles: only essential text, such as translations of signs. */
  readonly isForced?: boolean;
  readonly width?: number;
  readonly height?: number;
}

export interface SegmentTimes {
  readonly startSeconds: number;
  readonly durationSeconds: number;
}

/** The tracks that are converted to AAC (interface: `transcode_audio`, `transcode_mp3`, `transcode_ac3`). */
export interface AudioConversion {
  /** Everything except AAC and MP3. */
  readonly all: boolean;
  /** MP3 and MP2. */
  readonly mp3: boolean;
  /** AC-3 and E-AC-3. */
  readonly ac3: boolean;
  /** Opus and FLAC stay: HLS carries them in fragmented MP4, and browsers play them. */
  readonly isHls: boolean;
  /** Six channels for sources with more than two; otherwise stereo. */
  readonly channels: 2 | 6;
}

/** What a player requests of the audio of a file. */
export interface AudioRequest {
  /** ISO 639-1 or 639-2. The first audio track in this language is listed first and marked as default. */
  readonly language?: string | undefined;
  readonly conversion?: AudioConversion | undefined;
}

export interface OpenMediaOptions {
  readonly audio?: AudioRequest;
  /** Target duration of a segment, in seconds (default 6). */
  readonly targetSeconds?: number;
  readonly signal?: AbortSignal;
}

/** Returns a text that is equal for equal requests. */
export function audioKey({ language = "", conversion }: AudioRequest): string {
  if (!conversion) return language;
  const { all, mp3, ac3, isHls, channels } = conversion;
  return `${language}${all ? " all" : ""}${mp3 ? " mp3" : ""}${ac3 ? " ac3" : ""}${isHls ? " hls" : ""} ${channels}`;
}

/** The signature of `openMedia` in `open-media.ts`, which callers receive as a dependency. */
export type OpenMedia = (source: RandomAccess, options?: OpenMediaOptions) => Promise<Media>;
