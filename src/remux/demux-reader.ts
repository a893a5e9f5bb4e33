import type { EncodedPacket, EncodedPacketSink } from "mediabunny";
import type { AbortSignalLike } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import { reorderTicks } from "../media/timestamps.ts";
import type { Demuxer, DemuxPool } from "./demux-pool.ts";
import type { SourceTrack } from "./media-tracks.ts";
import type { OwnedMemory } from "./owned-memory.ts";
import {
  type PacketReader,
  SEGMENT_LIMIT_BYTES,
  SEGMENT_LIMIT_PACKETS,
  type SegmentBounds,
} from "./packet-reader.ts";
import type { TsMuxPacket } from "./ts-mux-input.ts";

/** Enough frames to see every pattern of reordering an encoder uses. */
const REORDER_FRAMES = 250;
/** And so many bytes at most, where they have to be read for it; but never fewer than a few frames. */
const REORDER_BYTES = 2 * 1024 * 1024;
const REORDER_FRAMES_AT_LEAST = 32;

interface Cursor {
  readonly track: number;
  readonly sink: EncodedPacketSink;
  packet: EncodedPacket | null;
  /** Whether a packet belongs to the next segment. */
  readonly isBeyond: (packet: EncodedPacket) => boolean;
}

/** Reads packets with mediabunny's demultiplexers. Tracks are read side by side, as the file is interleaved. */
export class DemuxReader implements PacketReader {
  readonly #pool: DemuxPool;

  constructor(pool: DemuxPool) {
    this.#pool = pool;
  }

  read(
    tracks: readonly SourceTrack[],
    bounds: SegmentBounds,
    _memory: OwnedMemory,
    signal?: AbortSignalLike,
  ): Promise<TsMuxPacket[]> {
    return this.#pool.run((demuxer) => readSegment(demuxer, tracks, bounds), signal);
  }

  first(track: SourceTrack, signal?: AbortSignalLike): Promise<TsMuxPacket> {
    return this.#pool.run(async (demuxer) => {
      const packet = await demuxer.sink(track.index).getFirstPacket();
      if (!packet) throw new SluiceError("broken_media", `the ${track.kind} track has no packets`);
      return muxPacket(0, packet);
    }, signal);
  }

  reorderSeconds(track: SourceTrack, signal?: AbortSignalLike): Promise<number> {
    return this.#pool.run((demuxer) => measureReorder(demuxer.sink(track.index)), signal);
  }

  close(): void {
    this.#pool.close();
  }
}

async function measureReorder(sink: EncodedPacketSink): Promise<number> {
  const metadataOnly = { metadataOnly: true };
  const times: number[] = [];
  let bytes = 0;
  let packet = await sink.getFirstPacket(metadataOnly);
  while (
    packet &&
    times.length < REORDER_FRAMES &&
    (bytes < REORDER_BYTES || times.length < REORDER_FRAMES_AT_LEAST)
  ) {
    times.push(packet.timestamp);
    bytes += packet.byteLength;
    packet = await sink.getNextPacket(packet, metadataOnly);
  }
  return reorderTicks(times);
}

async function readSegment(
  demuxer: Demuxer,
  tracks: readonly SourceTrack[],
  bounds: SegmentBounds,
): Promise<TsMuxPacket[]> {
  const cursors: Cursor[] = [];
  for (const [track, { kind, index }] of tracks.entries()) {
    const sink = demuxer.sink(index);
    cursors.push(
      kind === "video" ? await videoCursor(track, sink, bounds) : await audioCursor(track, sink, bounds),
    );
  }
  const packets: TsMuxPacket[] = [];
  let bytes = 0;
  for (let next = earliest(cursors); next; next = earliest(cursors)) {
    const packet = next.packet!;
    packets.push(muxPacket(next.track, packet));
    bytes += packet.data.length;
    if (bytes > SEGMENT_LIMIT_BYTES || packets.length > SEGMENT_LIMIT_PACKETS) {
      throw new SluiceError(
        "broken_media",
        `a segment of more than ${SEGMENT_LIMIT_BYTES} bytes: too few key frames`,
      );
    }
    const following = await next.sink.getNextPacket(packet);
    next.packet = following && !next.isBeyond(following) ? following : null;
  }
  return packets;
}

function muxPacket(track: number, packet: EncodedPacket): TsMuxPacket {
  return {
    track,
    ptsSeconds: packet.timestamp,
    durationSeconds: packet.duration,
    isKey: packet.type === "key",
    data: packet.data,
  };
}

async function videoCursor(track: number, sink: EncodedPacketSink, bounds: SegmentBounds): Promise<Cursor> {
  const first = await keyAt(sink, bounds.startSeconds);
  const end = await endKey(sink, bounds.endSeconds);
  const isBeyond = (packet: EncodedPacket) => end !== null && packet.sequenceNumber >= end.sequenceNumber;
  return { track, sink, packet: first && !isBeyond(first) ? first : null, isBeyond };
}

/** The key frame a cut lies on: the last one not after it. Before the first cut everything from the start belongs. */
async function keyAt(sink: EncodedPacketSink, seconds: number): Promise<EncodedPacket | null> {
  if (seconds === Number.NEGATIVE_INFINITY) return sink.getFirstPacket();
  return (await sink.getKeyPacket(seconds)) ?? sink.getFirstPacket();
}

async function endKey(sink: EncodedPacketSink, seconds: number): Promise<EncodedPacket | null> {
  if (seconds === Number.POSITIVE_INFINITY) return null;
  return sink.getKeyPacket(seconds, { metadataOnly: true });
}

async function audioCursor(track: number, sink: EncodedPacketSink, bounds: SegmentBounds): Promise<Cursor> {
  const isBeyond = (packet: EncodedPacket) => packet.timestamp >= bounds.endSeconds;
  let packet = await audioAt(sink, bounds.startSeconds);
  // The packet found may begin before the cut: then it was the last of the segment before.
  while (packet && packet.timestamp < bounds.startSeconds) packet = await sink.getNextPacket(packet);
  return { track, sink, packet: packet && !isBeyond(packet) ? packet : null, isBeyond };
}

async function audioAt(sink: EncodedPacketSink, seconds: number): Promise<EncodedPacket | null> {
  if (seconds === Number.NEGATIVE_INFINITY) return sink.getFirstPacket();
  return (await sink.getPacket(seconds)) ?? sink.getFirstPacket();
}

function earliest(cursors: readonly Cursor[]): Cursor | undefined {
  let best: Cursor | undefined;
  for (const cursor of cursors) {
    if (cursor.packet && (!best || cursor.packet.timestamp < best.packet!.timestamp)) best = cursor;
  }
  return best;
}
