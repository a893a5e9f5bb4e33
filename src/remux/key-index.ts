import { SluiceError } from "../base/errors.ts";
import type { Demuxer } from "./demux-pool.ts";
import { SEGMENTS_LIMIT, wishedSeconds } from "./segment-plan.ts";

/**
 * The times of the key frames to cut at: of each target's length the first one at or after it. For files whose sample
 * table is in memory: it reads nothing more.
 */
export async function cutsFromSampleTable(
  demuxer: Demuxer,
  index: number,
  targetSeconds: number,
): Promise<number[]> {
  const sink = demuxer.sink(index);
  const metadataOnly = { metadataOnly: true };
  const cuts: number[] = [];
  let key = await sink.getFirstKeyPacket(metadataOnly);
  while (key) {
    cuts.push(key.timestamp);
    if (cuts.length > SEGMENTS_LIMIT) throw new SluiceError("broken_media", "the file has too many segments");
    // Jumps to the last key frame before the wished cut, and from there on: few steps however dense they are.
    const wished = key.timestamp + wishedSeconds(cuts.length - 1, targetSeconds) - 0.0005;
    let next = await sink.getKeyPacket(wished, metadataOnly);
    if (!next || next.sequenceNumber <= key.sequenceNumber) next = key;
    do next = await sink.getNextKeyPacket(next, metadataOnly);
    while (next && next.timestamp < wished);
    key = next;
  }
  return cuts;
}

/** Where a track ends, from its last packet; only for files whose sample table is in memory. */
export async function endFromSampleTable(demuxer: Demuxer, indexes: readonly number[]): Promise<number> {
  let end = 0;
  for (const index of indexes) {
    const last = await demuxer.sink(index).getPacket(Number.POSITIVE_INFINITY, { metadataOnly: true });
    if (last) end = Math.max(end, last.timestamp + last.duration);
  }
  return end;
}
