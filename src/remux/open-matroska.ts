import { SluiceError } from "../base/errors.ts";
import { voidHead } from "../media/ebml.ts";
import type { BlockCache } from "./block-cache.ts";
import { ClusterFinder, lastBlockSeconds } from "./cluster-finder.ts";
import type { DemuxPool } from "./demux-pool.ts";
import { DemuxReader } from "./demux-reader.ts";
import { cueSeconds, readMatroskaIndex } from "./matroska-index.ts";
import { keyDistanceSeconds, MatroskaReader } from "./matroska-reader.ts";
import { MatroskaSubtitles } from "./matroska-subtitles.ts";
import { describeTracks } from "./media-tracks.ts";
import { type OpenWishes, orderTracks } from "./open-options.ts";
import { PacketMedia } from "./packet-media.ts";
import { evenCuts, mergeTail, planCuts } from "./segment-plan.ts";

/** How long the last frame lasts, where nothing tells. */
const FRAME_SECONDS = 0.04;

/**
 * Opens a Matroska or WebM file. Without cues (a broadcast that was recorded) segments are planned at even times and begin
 * with the first key frame after theirs: their lengths are then true to about a group of pictures.
 */
export async function openMatroska(
  cache: BlockCache,
  pool: DemuxPool,
  wishes: OpenWishes,
): Promise<PacketMedia> {
  const { targetSeconds, signal } = wishes;
  const index = await readMatroskaIndex(cache, signal);
  for (const { at, end } of index.attachments) if (end - at >= 9) pool.patches.set(at, voidHead(end - at));
  const described = await pool.run((demuxer) => describeTracks(demuxer), signal);
  const tracks = orderTracks(described, wishes.language);
  const leading = tracks[0];
  if (!leading) throw new SluiceError("broken_media", "a Matroska file without video or audio tracks");
  const endSeconds = index.durationSeconds ?? (await lastBlockSeconds(cache, index, signal)) + FRAME_SECONDS;
  const keys = cueSeconds(index, leading.id);
  const isGridded = keys.length === 0 && leading.kind === "video";
  const gridSeconds = isGridded ? await keyDistanceSeconds(cache, index, leading.id, signal) : 0;
  const cuts =
    keys.length > 0
      ? mergeTail(planCuts(keys, targetSeconds), endSeconds, targetSeconds)
      : evenCuts(0, endSeconds, targetSeconds, gridSeconds);
  const finder = new ClusterFinder(cache, index, leading.id, endSeconds);
  // Compressed frames are unpacked by the library.
  const isPacked = index.tracks.some(
    (track) => track.packing !== "none" && tracks.some(({ id }) => id === track.number),
  );
  const reader = isPacked ? new DemuxReader(pool) : new MatroskaReader(cache, index, finder, leading.id);
  if (!isPacked) pool.close();
  return new PacketMedia({
    container: "matroska",
    reader,
    tracks,
    subtitles: new MatroskaSubtitles(cache, index, finder),
    cuts,
    endSeconds,
  });
}
