import type { BufferPool } from "../base/buffer-pool.ts";
import type { AbortSignalLike } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import type { SourceTrack } from "./media-tracks.ts";
import type { ReadingOrder } from "./piece-stream.ts";
import type { PacketBatch, TsMuxPacket } from "./ts-mux-input.ts";

/** Limits of one segment, for hostile files and files with too few key frames. */
const SEGMENT_LIMIT_BYTES = 192 * 1024 * 1024;
const SEGMENT_LIMIT_PACKETS = 200_000;

/** Throws `SluiceError("broken_media")` if a segment is too large. */
export function checkSegmentSize(bytes: number, packets: number): void {
  if (bytes <= SEGMENT_LIMIT_BYTES && packets <= SEGMENT_LIMIT_PACKETS) return;
  throw new SluiceError(
    "broken_media",
    `a segment exceeds ${SEGMENT_LIMIT_BYTES} bytes or ${SEGMENT_LIMIT_PACKETS} packets; the file has too few key frames`,
  );
}

/** The bounds of a segment in seconds of the file's timeline; infinite at the ends of the file. */
export interface SegmentBounds {
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** The part of the segment whose audio is converted, `[from, to)`; absent: all of it. */
  readonly sliceSeconds?: readonly [from: number, to: number];
}

/** What to read of a file, and the stage that finds the frames in it. */
export interface Demux {
  readonly ranges: ReadingOrder;
  readonly demuxer: ReadableWritablePair<PacketBatch, Uint8Array<ArrayBuffer>>;
  /** The demuxer returns its input to this pool. */
  readonly pool: BufferPool;
}

/** A frame that is known by the index of the file alone: its `data` is empty. */
export interface PlannedFrame extends TsMuxPacket {
  /** Bytes. */
  readonly size: number;
  /** True if it is not read, because no byte of it is requested. */
  isSkipped?: boolean;
}

/** Frames of all tracks, in decode order within each track. */
export interface PlannedFrames {
  readonly samples: readonly PlannedFrame[];
  /** True for the last frames of a segment. */
  readonly endsSegment: boolean;
}

/** Finds encoded packets in a container by time. It keeps no position. */
export interface PacketReader {
  /**
   * Demultiplexes consecutive segments; the last batch of each ends the segment. `packet.track` is an index into `tracks`. Video
   * reaches from key frame to key frame, audio is split by time, so no packet is lost or duplicated between segments. `signal` also
   * ends the work of the stage. Rejects with `SluiceError`. `mark` can mark frames of the first segment as skipped; only for a reader that can {@link plan}.
   */
  demux(
    tracks: readonly SourceTrack[],
    segments: readonly SegmentBounds[],
    signal?: AbortSignalLike,
    mark?: (frames: readonly PlannedFrames[]) => void,
  ): Promise<Demux>;
  /**
   * Plans the frames that {@link demux} delivers, in the same order and divided in the same way; absent if the index does not list all
   * frames.
   */
  plan?(tracks: readonly SourceTrack[], segments: readonly SegmentBounds[]): Iterable<PlannedFrames>;
  /**
   * Reads the packets of an audio track in the last `seconds` of a segment. Together with those of the next segment they have no gap.
   * Rejects with `SluiceError`.
   */
  tail(
    track: SourceTrack,
    segment: SegmentBounds,
    seconds: number,
    signal?: AbortSignalLike,
  ): Promise<TsMuxPacket[]>;
  /** Reads the first packet of a track. Rejects with `SluiceError("broken_media")` if it has none. */
  first(track: SourceTrack, signal?: AbortSignalLike): Promise<TsMuxPacket>;
  /** Measures on the first frames of a video track how its encoder reorders frames. */
  reordering(track: SourceTrack, signal?: AbortSignalLike): Promise<Reordering>;
}

/** How an encoder reorders frames. */
export interface Reordering {
  /** How far decode times precede presentation times. */
  readonly seconds: number;
  /** How many frames precede another in decode order and follow it in presentation order. */
  readonly frames: number;
}

/** The packets of the last `seconds`. */
export function lastSeconds(packets: readonly TsMuxPacket[], seconds: number): TsMuxPacket[] {
  const end = packets.at(-1)?.ptsSeconds ?? 0;
  const from = packets.findIndex(({ ptsSeconds }) => ptsSeconds > end - seconds);
  return from < 0 ? [] : packets.slice(from);
}
