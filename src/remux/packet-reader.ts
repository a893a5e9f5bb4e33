import type { AbortSignalLike } from "../base/byte-source.ts";
import type { SourceTrack } from "./media-tracks.ts";
import type { OwnedMemory } from "./owned-memory.ts";
import type { TsMuxPacket } from "./ts-mux-input.ts";

/** One segment holds at most so many bytes: what a hostile or keyless file can make us hold at once. */
export const SEGMENT_LIMIT_BYTES = 192 * 1024 * 1024;
export const SEGMENT_LIMIT_PACKETS = 200_000;

/** Where a segment begins and ends, in the time of the file; infinite at the ends of the file. */
export interface SegmentBounds {
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** Takes encoded packets out of a container, by time. It keeps no position. */
export interface PacketReader {
  /**
   * All packets of `tracks` in a segment, in decode order within each track; `track` of a packet is the position in `tracks`.
   * Of video from one key frame to the next, of audio those that begin within the time: none is lost or doubled
   * between segments. They lie in `memory`, or in memory that is shared. Rejects with `SluiceError`.
   */
  read(
    tracks: readonly SourceTrack[],
    bounds: SegmentBounds,
    memory: OwnedMemory,
    signal?: AbortSignalLike,
  ): Promise<TsMuxPacket[]>;
  /** The first packet of a track. */
  first(track: SourceTrack, signal?: AbortSignalLike): Promise<TsMuxPacket>;
  /** How far decoding runs ahead of showing, in seconds, measured on the first frames of a video track. */
  reorderSeconds(track: SourceTrack, signal?: AbortSignalLike): Promise<number>;
  /** Frees what it holds; pending calls reject. */
  close(): void;
}
