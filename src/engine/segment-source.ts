import type { Infohash } from "../base/ids.ts";
import type { Instant, UnixSeconds } from "../base/time.ts";
import type { ManifestRendition, SegmentName } from "./engine.ts";
import type { SegmentBytes } from "./segment-cache.ts";

/**
 * What a session plays, as segments: a file that was opened as media, HLS of another server, an endless stream. It keeps
 * no position, so that all who play the same share it; whoever waits for it drives it.
 */
export interface SegmentSource {
  /** What its segments are. */
  readonly container: "ts" | "fmp4";
  /** Whether it is being made while it is watched. */
  readonly isLive: boolean;
  /** Says which source this is among all: segments of the same name and number are the same bytes. */
  readonly name: string;
  /** The manifest of what there is, waited for. Rejects with `SluiceError`, as all below. */
  manifest(place: ManifestPlace, rendition: ManifestRendition, signal: AbortSignal): Promise<string>;
  /** The index at which a continuous stream begins. */
  first(signal: AbortSignal): Promise<number>;
  /** The index to go on with where `index` is next: itself, waited for at the live edge; a later one where that has gone
   * by; undefined after the last. */
  reach(index: number, signal: AbortSignal): Promise<number | undefined>;
  /** The index of the segment that a manifest names so, also of one of which only parts are told, or hinted at; rejects
   * with `no_such_segment`. */
  find(kind: SegmentName["kind"], number: number, signal: AbortSignal, track?: number): Promise<number>;
  /** Makes, or fetches, one segment. `track` counts for subtitles, from 0, and for sound of its own, from 1; else it is 0. */
  make(kind: SegmentName["kind"], index: number, track: number, signal: AbortSignal): Promise<SegmentBytes>;
  /** What playing it takes, on average; absent where that is not known. */
  readonly bytesPerSecond?: number | undefined;
  /** Where the window of a live source lies now, where it is known. */
  livePosition?(): LivePosition | undefined;
  /** A live stream that can be played finer than by whole segments, and gone back in; absent for what has segments only. */
  readonly live?: LiveStream;
  /** The forms that its server offers, and which of them this is; absent, or none, where there is only one. */
  readonly variants?: readonly VariantFacts[];
  readonly variantIndex?: number;
}

/** What a player wishes of what comes as segments. */
export interface SourceWish {
  readonly output: "ts" | "hls";
  readonly audioLanguage: string | undefined;
  /** At most this height, in pixels. */
  readonly maxHeight?: number | undefined;
  /** Which of the forms, from 0; below 0, or absent, for ours. */
  readonly variantIndex?: number | undefined;
}

/** One form of a stream, as its manifest tells of it. */
export interface VariantFacts {
  /** The peak; 0 where it is not said. */
  readonly bitsPerSecond: number;
  readonly averageBitsPerSecond: number | undefined;
  /** Pixels; undefined where they are not said. */
  readonly width: number | undefined;
  readonly height: number | undefined;
  /** RFC 6381; empty where they are not said. */
  readonly codecs: readonly string[];
  readonly isAudio: boolean;
}

/** Where a manifest's URLs lead: all of them are absolute. */
export interface ManifestPlace {
  /** `http://host:port`. */
  readonly base: string;
  readonly session: { readonly infohash: Infohash; readonly key: string; readonly ordinal: number };
  /** Live only: how far behind the edge this player watches (0 where absent). */
  readonly shiftMs?: number;
  /** Live only: the manifest is wanted as soon as it has this segment, or this part of it (RFC 8216bis 6.2.5.2). Where that
   * is more than two segments ahead, it rejects with `bad_parameter` at once. How long is waited is the asker's. */
  readonly reload?: { readonly segment: number; readonly part: number | undefined };
  /** Live only: its player has read an earlier one, and does without the old segments (`MediaManifest.isDelta`). */
  readonly isDelta?: boolean;
}

/** A live stream as its players need it besides whole segments. */
export interface LiveStream {
  /** One player's way through it as one transport stream: from the newest cut, or from so far behind the edge. */
  cursor(shiftMs: number): LiveCursor;
  /** One part of a segment that is listed, or the next to come, which is waited for (RFC 8216bis 4.4.4.9); rejects with
   * `no_such_segment`. */
  part(index: number, part: number, signal: AbortSignal): Promise<SegmentBytes>;
}

/** A player's place in a live stream. It holds no media: who stalls costs nothing, and goes on where it was, or at the
 * oldest cut that is kept. */
export interface LiveCursor {
  /** What comes next, waited for at the edge: whole packets, the first of them PAT and PMT before a keyframe. Undefined
   * where the stream has ended. Not to be asked again before it has answered. */
  next(signal: AbortSignal): Promise<Uint8Array | undefined>;
  /** Goes to the cut at or before this time; to the edge where it is undefined. */
  seek(at: UnixSeconds | undefined): void;
  /** The time of what comes next; undefined before anything is there. */
  readonly position: UnixSeconds | undefined;
}

/** The window of a live source, by the wall clock. */
export interface LivePosition {
  readonly firstAt: UnixSeconds;
  readonly lastAt: UnixSeconds;
  /** How many segments that is. */
  readonly segments: number;
  /** How long a piece lasts, where it comes in pieces. */
  readonly pieceMs?: number;
  /** When the newest of it came; absent where that tells nothing, as of what comes in long segments. */
  readonly heardAt?: Instant;
}
