import type { Infohash } from "../base/ids.ts";
import type { ByteRange } from "../base/range.ts";
import type { Instant, UnixSeconds } from "../base/time.ts";

/**
 * The segments that a session plays: of a file that was opened as media, of HLS from another server, or of an endless stream.
 * It has no position, so that all players of the content share it, and it works only while a caller waits.
 */
export interface SegmentSource {
  /** Container of the segments. */
  readonly container: "ts" | "fmp4";
  /** True for content that is made while it is watched. */
  readonly isLive: boolean;
  /** Identifies the source: two sources with the same name have identical segments. */
  readonly name: string;
  /** Waits for the manifest of the available segments. All methods reject with `SluiceError`. */
  manifest(place: ManifestPlace, rendition: ManifestRendition, signal: AbortSignal): Promise<string>;
  /** Waits for the manifest of one quality of a broadcast (from 0); absent for content without qualities to change between. */
  variantManifest?(index: number, place: ManifestPlace, signal: AbortSignal): Promise<string>;
  /** Returns the index at which a continuous stream starts. */
  first(signal: AbortSignal): Promise<number>;
  /** Returns the index to continue with if `index` is next: `index` itself, after a wait at the live edge; a later one if that
   * segment is not kept any more; undefined after the last. `track`: that of a film that has other segments than the picture. */
  reach(index: number, signal: AbortSignal, track?: number): Promise<number | undefined>;
  /** Returns the index of the segment with this number in a manifest, also if the manifest lists only parts of it. Rejects with
   * `no_such_segment`. */
  find(kind: SegmentName["kind"], number: number, signal: AbortSignal, track?: number): Promise<number>;
  /** Makes or fetches one segment. `track`: index of the subtitle track from 0, of a separate audio track from 1; otherwise 0. */
  make(kind: SegmentName["kind"], index: number, track: number, signal: AbortSignal): Promise<SegmentBytes>;
  /** The whole content as a body of known size; absent if only segments exist. */
  readonly body?: SourceBody;
  /** Opens the content as one transport stream for one connection, read in the order of the file; absent for a source whose segments
   * are read one after another. */
  play?(reads: PieceReads): Promise<PlayerMedia>;
  /** The exact size of the stream of `play`, in bytes, if it is known: then `play` can start anywhere. */
  readonly streamBytes?: number | undefined;
  /** Average bitrate; absent if not known. */
  readonly bytesPerSecond?: number | undefined;
  /** Live only: true if the segment with this number in a manifest has all its bytes, so that every engine serves the same ones.
   * Absent: not known. */
  isWhole?(number: number): boolean;
  /** Returns the window of a live source; undefined if not known. */
  livePosition?(): LivePosition | undefined;
  /** Access to a live stream in units smaller than segments, with seeking; absent for sources that have segments only. */
  readonly live?: LiveStream;
  /** The variants that the server offers, and the index of this one; absent or empty if there is only one. */
  readonly variants?: readonly VariantFacts[];
  readonly variantIndex?: number;
}

/** Content as one body of known size, for players that seek by byte ranges. */
export interface SourceBody {
  readonly mime: string;
  readonly size: number;
  /** Waits for the first bytes. */
  ready(signal: AbortSignal): Promise<void>;
  reader(range: ByteRange): BodyReader;
}

/** Reads a range of a body, one read at a time. */
export interface BodyReader {
  /** Fills the head of `into` and returns the number of bytes, 0 at the end. */
  read(into: Uint8Array): number | Promise<number>;
  close(reason?: unknown): void;
}

/** How the pieces for one connection are read. */
export interface PieceReads {
  readonly signal: AbortSignal;
  /** Waits until the player waits for data. */
  ready?(): Promise<void>;
  /** The bytes of the transport stream that are requested; only for a source with `streamBytes`. */
  readonly range?: ByteRange | undefined;
  /** Runs each wait for bytes, with a time limit. */
  wait<T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** The way from content to one player: `pieces.pipeThrough(remuxer)`. */
export interface PlayerMedia {
  /** The content in reading order, as the swarm, the live window or the web server delivers it. Only pulls read it. */
  readonly pieces: ReadableStream<Uint8Array>;
  /** Turns the pieces into MPEG-TS. */
  readonly remuxer: ReadableWritablePair<Uint8Array, Uint8Array>;
  /** Takes a chunk of the output back when its bytes have been copied; absent if other players may share the chunk. */
  release?(chunk: Uint8Array): void;
}

/** What a player requests of content that consists of segments. */
export interface SourceOptions {
  readonly output: "ts" | "hls";
  readonly audioLanguage: string | undefined;
  /** Maximum height in pixels. */
  readonly maxHeight?: number | undefined;
  /** Index of the variant; negative or absent: the engine chooses. */
  readonly variantIndex?: number | undefined;
}

/** One variant of a stream, as its manifest describes it. */
export interface VariantFacts {
  /** Peak bitrate; 0 if not specified. */
  readonly bitsPerSecond: number;
  readonly averageBitsPerSecond: number | undefined;
  /** Pixels; undefined if not specified. */
  readonly width: number | undefined;
  readonly height: number | undefined;
  /** Codecs (RFC 6381); empty if not specified. */
  readonly codecs: readonly string[];
  readonly isAudio: boolean;
}

/** The URLs in a manifest. */
export interface ManifestUrls {
  /** The manifest itself; the query of a rendition is appended. */
  readonly manifest: string;
  /** Returns the URL of a segment or part; `ending` follows the number and its dot, such as `ts` or `p3.ts`. */
  segment(index: number, ending: string): string;
}

/** Returns the URLs of a session, which are absolute. `base` is `http://host:port`. */
export function sessionManifestUrls(
  base: string,
  session: { readonly infohash: Infohash; readonly key: string; readonly ordinal: number },
): ManifestUrls {
  const { infohash, key, ordinal } = session;
  return {
    manifest: `${base}/ace/m/${infohash}/${key}.m3u8`,
    segment: (index, ending) => `${base}/ace/c/${infohash}/${segmentNumber(ordinal, index)}.${ending}`,
  };
}

/** The URLs of a manifest without a session. They are relative, so that they are the same behind every host and path. */
export const SHARED_MANIFEST_URLS: ManifestUrls = {
  manifest: "index.m3u8",
  segment: (index, ending) => `${segmentNumber(0, index)}.${ending}`,
};

/** What a manifest request specifies. */
export interface ManifestPlace {
  readonly urls: ManifestUrls;
  /** Live only: how far this player is behind the edge; 0 by default. */
  readonly shiftMs?: number;
  /** Live only: hold the manifest until it contains this segment or part (RFC 8216bis 6.2.5.2). Rejects with `bad_parameter` if
   * that is more than two segments ahead. The caller limits the wait. */
  readonly reload?: { readonly segment: number; readonly part: number | undefined };
  /** Live only: the player has an earlier manifest and needs no old segments (`MediaManifest.isDelta`). */
  readonly isDelta?: boolean;
  /** The segments from which this player gets another variant than before (`set_stream`). */
  readonly cuts?: readonly number[];
}

/** Access to a live stream in units smaller than segments. */
export interface LiveStream {
  /**
   * Opens one player's position in the stream, `shiftMs` behind the edge. 0: at the edge, which means the oldest random access
   * point that is at most `backlogMs` behind the newest data, or else the newest one.
   */
  cursor(shiftMs: number, backlogMs?: number): LiveCursor;
  /** Returns one part of a listed segment, or waits for the next part (RFC 8216bis 4.4.4.9). Rejects with `no_such_segment`. */
  part(index: number, part: number, signal: AbortSignal, track?: number): Promise<SegmentBytes>;
}

/**
 * A player's position in a live stream. It holds no media, so a stalled player costs no memory. The player continues at its last
 * position, or at the oldest random access point if the window has moved past that position.
 */
export interface LiveCursor {
  /** Returns the next whole packets, after a wait at the edge; undefined at the end of the stream. At a random access point PAT
   * and PMT come first. Must not be called again before it has settled. */
  next(signal: AbortSignal): Promise<Uint8Array | undefined>;
  /** Moves to the random access point at or before this time; to the edge if `at` is undefined. */
  seek(at: UnixSeconds | undefined): void;
  /** The time of the next media; undefined before any has arrived. */
  readonly position: UnixSeconds | undefined;
}

/** The window of a live source, in wall-clock time. */
export interface LivePosition {
  readonly firstAt: UnixSeconds;
  readonly lastAt: UnixSeconds;
  /** Number of segments in the window. */
  readonly segments: number;
  /** Duration of a piece; absent for a source without pieces. */
  readonly pieceMs?: number;
  /** When the newest data arrived; absent for sources with long segments, where that has no meaning. */
  readonly heardAt?: Instant;
}

/** A manifest of the session: the one a player opens, the media playlist behind a master playlist, that of a subtitle track
 * (from 0), or that of a separate audio track (from 1). */
export type ManifestRendition =
  | "main"
  | "media"
  | { readonly subtitles: number }
  | { readonly audio: number };

/** The parsed name of a segment: `<number>.ts`, `.m4s`, `.mp4` (initialisation), `.vtt`. Subtitles and separate audio tracks
 * (from 1) have a track number. */
export interface SegmentName {
  readonly number: number;
  readonly kind: "ts" | "m4s" | "mp4" | "vtt";
  readonly track: number;
  /** A part of a live segment (`<number>.p<part>.ts`), from 0; absent for the whole. */
  readonly part?: number;
}

/** The segments of quality `n` of a broadcast have the track numbers from `n` times this number on. */
export const VARIANT_TRACKS = 1000;

/** The bytes of a segment. Shared by all requesters: never write to them. */
export type SegmentBytes = Uint8Array<ArrayBuffer>;

/**
 * CHOICE(segment-number): a segment's name contains no session key, but two sessions of one infohash may play different files
 * or languages, and a request for a segment must renew the right lease. So the number is the session's ordinal times a
 * million plus the index. The first session of a transfer has the ordinal 0: its segments are `0.ts`, `1.ts` …
 */
const SEGMENTS_PER_SESSION = 1_000_000;

/** Returns the number in the name of a segment. Live segments may have any index: its last six digits are used. */
export function segmentNumber(ordinal: number, index: number): number {
  return ordinal * SEGMENTS_PER_SESSION + (index % SEGMENTS_PER_SESSION);
}

/** Splits a segment number into ordinal and index; the inverse of {@link segmentNumber}. */
export function splitSegmentNumber(number: number): { ordinal: number; index: number } {
  return { ordinal: Math.floor(number / SEGMENTS_PER_SESSION), index: number % SEGMENTS_PER_SESSION };
}

/**
 * Parses the file name of a segment: `12.ts`, `12.m4s`, `12.mp4`, each also of a separate audio track (`12.a1.ts`),
 * `12.p3.ts` (part 3 of a live segment), `12.v1.ts` and `12.v1.p3.ts` (quality 1 of a broadcast), and `12.s3.vtt` (subtitle track 3). Returns undefined for anything else.
 */
export function parseSegmentName(text: string): SegmentName | undefined {
  // Some clients append an ending such as `&.mp4` to every URL.
  const match =
    /^(\d{1,12})\.(?:v([1-9])\.)?(?:p(\d{1,4})\.(ts)|(?:a([1-9]\d{0,2})\.)?(ts|m4s|mp4)|s(\d{1,3})\.(vtt))(?:&.*)?$/.exec(
      text,
    );
  if (!match) return undefined;
  const [, number, variant = 0, part, partKind, audioTrack, kind, subtitleTrack, subtitles] = match;
  return {
    number: Number(number),
    kind: (partKind ?? kind ?? subtitles) as SegmentName["kind"],
    track: VARIANT_TRACKS * Number(variant) + Number(audioTrack ?? subtitleTrack ?? 0),
    ...(part !== undefined && { part: Number(part) }),
  };
}
