import { reorderTicks } from "../media/timestamps.ts";
import type { Demuxer } from "./demux-pool.ts";

/** Enough frames to see every pattern of reordering an encoder uses. */
const REORDER_FRAMES = 250;
/** And so many bytes at most, where they have to be read for it; but never fewer than a few frames. */
const REORDER_BYTES = 2 * 1024 * 1024;
const FRAMES_AT_LEAST = 32;

/** How far decoding runs ahead of showing, in seconds, measured on the first frames of a video track. */
export async function reorderSeconds(demuxer: Demuxer, index: number): Promise<number> {
  const sink = demuxer.sink(index);
  const metadataOnly = { metadataOnly: true };
  const times: number[] = [];
  let bytes = 0;
  let packet = await sink.getFirstPacket(metadataOnly);
  while (
    packet &&
    times.length < REORDER_FRAMES &&
    (bytes < REORDER_BYTES || times.length < FRAMES_AT_LEAST)
  ) {
    times.push(packet.timestamp);
    bytes += packet.byteLength;
    packet = await sink.getNextPacket(packet, metadataOnly);
  }
  return reorderTicks(times);
}
