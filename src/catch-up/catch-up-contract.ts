import type { ByteRange } from "../base/range.ts";
import type { Item } from "../library/contract.ts";

/** A range of time in UNIX milliseconds, half open. */
export interface TimeSpan {
  readonly startMs: number;
  readonly endMs: number;
}

/** A channel whose media is kept for catch-up. */
export interface KeptChannel {
  /** The `hash` of the figures of its items, equal for all its sources. */
  readonly channel: string;
  readonly itemId: number;
  readonly title: string;
  /** Bytes on disk. */
  readonly bytes: number;
  /** The media that is kept, oldest first. Gaps of more than 2 s separate the spans. */
  readonly spans: readonly TimeSpan[];
  /** Why nothing is kept at the moment; null if there is no problem. */
  readonly problem: string | null;
}

/** A part of the kept media that can be played on its own: it starts with the tables and a key frame. */
export interface KeptSegment extends TimeSpan {
  /** Start time of the file that contains it; names the file. */
  readonly block: number;
  /** Its bytes in that file. */
  readonly range: ByteRange;
  /** Playing time. */
  readonly durationMs: number;
  /** True if it does not continue the segment before it: a gap, or another source. */
  readonly isDiscontinuous: boolean;
}

/** The kept media of a time, as one continuous transport stream. */
export interface KeptMedia {
  readonly segments: readonly KeptSegment[];
  /** Sum of the segments. */
  readonly bytes: number;
  /** True if more media of this time may still arrive. */
  readonly isGrowing: boolean;
  /** Reads bytes of the segments one after the other; pull drives it. */
  read(range: ByteRange): ReadableStream<Uint8Array>;
  /** Writes an HLS media manifest; `uriOf` returns the URI of a segment. */
  manifest(uriOf: (segment: KeptSegment) => string): string;
}

/** Keeps the media of selected channels for some time, so that past programmes can be played. */
export interface CatchUp {
  /** How long media is kept. */
  readonly windowMs: number;
  /** The channels in the order in which they were added, or only that of an item. */
  list(item?: Item): readonly KeptChannel[];
  /** Keeps the channel of an item from now on. Rejects with `too_many`. `allowPrivateUrls`: its URLs may lead to this network. */
  add(item: Item, options: { readonly allowPrivateUrls: boolean }): Promise<void>;
  /** Ends that, and deletes what was kept. Rejects with `unknown_item` if the channel is not kept. */
  remove(item: Item): Promise<void>;
  /** Returns true if the channel of an item is kept. */
  isKept(item: Item): boolean;
  /** Returns the parts of `[startMs, endMs)` that are kept of the channel of an item. */
  spans(item: Item, span: TimeSpan): readonly TimeSpan[];
  /** Opens what is kept of a time; undefined if that is nothing. */
  open(item: Item, span: TimeSpan): Promise<KeptMedia | undefined>;
  /**
   * Streams what is kept of a time as one transport stream, and waits for media that is still to come; pull drives it. Starts at the
   * key frame before `startMs`, or with what is there. Ends at `endMs`, or when the channel is removed.
   */
  follow(item: Item, span: TimeSpan): ReadableStream<Uint8Array>;
  /** Reads bytes of one file, as `KeptSegment` names it; undefined if they are not kept. */
  file(item: Item, block: number, range: ByteRange): ReadableStream<Uint8Array> | undefined;
}
