import type { EncodedPacket, EncodedPacketSink } from "mediabunny";
import { SluiceError } from "../base/errors.ts";
import type { Demuxer } from "./demux-pool.ts";
import type { SourceTrack } from "./media-tracks.ts";

/** One segment holds at most so many bytes: what a hostile or keyless file can make us hold at once. */
const SEGMENT_LIMIT_BYTES = 192 * 1024 * 1024;
const SEGMENT_LIMIT_PACKETS = 200_000;

/** Where a segment begins and ends, in the time of the file; open at the ends of the file. */
export interface SegmentBounds {
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** One packet, with the position of its track in the list that was asked for. */
export interface TrackPacket {
  readonly track: number;
  readonly packet: EncodedPacket;
}

interface Cursor {
  readonly track: number;
  readonly sink: EncodedPacketSink;
  packet: EncodedPacket | null;
  /** Whether a packet belongs to the next segment. */
  readonly isBeyond: (packet: EncodedPacket) => boolean;
}

/**
 * Reads all packets of a segment: of video from one key frame (in decode order) to the next, of audio those that begin
 * within the time. So none is lost or doubled between segments. Tracks are read side by side, as the file is interleaved.
 */
export async function readSegment(
  demuxer: Demuxer,
  tracks: readonly SourceTrack[],
  bounds: SegmentBounds,
): Promise<TrackPacket[]> {
  const cursors: Cursor[] = [];
  for (const [track, { kind, index }] of tracks.entries()) {
    const sink = demuxer.sink(index);
    cursors.push(
      kind === "video" ? await videoCursor(track, sink, bounds) : await audioCursor(track, sink, bounds),
    );
  }
  const packets: TrackPacket[] = [];
  let bytes = 0;
  for (let next = earliest(cursors); next; next = earliest(cursors)) {
    const packet = next.packet!;
    packets.push({ track: next.track, packet });
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
