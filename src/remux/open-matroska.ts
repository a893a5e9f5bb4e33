import { SluiceError } from "../base/errors.ts";
import type { BlockCache } from "./block-cache.ts";
import type { DemuxPool } from "./demux-pool.ts";
import { DemuxReader } from "./demux-reader.ts";
import { cueSeconds, readMatroskaIndex } from "./matroska-index.ts";
import { describeTracks } from "./media-tracks.ts";
import { type OpenWishes, orderTracks } from "./open-options.ts";
import { PacketMedia } from "./packet-media.ts";
import { evenCuts, mergeTail, planCuts } from "./segment-plan.ts";
import { NO_SUBTITLES } from "./subtitles.ts";

/** Opens a Matroska or WebM file. */
export async function openMatroska(
  cache: BlockCache,
  pool: DemuxPool,
  wishes: OpenWishes,
): Promise<PacketMedia> {
  const index = await readMatroskaIndex(cache, wishes.signal);
  return pool.run(async (demuxer) => {
    const tracks = orderTracks(await describeTracks(demuxer), wishes.language);
    if (tracks.length === 0)
      throw new SluiceError("broken_media", "a Matroska file without video or audio tracks");
    const first = tracks[0]!;
    const endSeconds = index.durationSeconds ?? 0;
    const keys = cueSeconds(index, demuxer.tracks[first.index]!.id);
    const cuts =
      first.kind === "video" && keys.length > 0
        ? mergeTail(planCuts(keys, wishes.targetSeconds), endSeconds, wishes.targetSeconds)
        : evenCuts(0, endSeconds, wishes.targetSeconds);
    return new PacketMedia({
      container: "matroska",
      reader: new DemuxReader(pool),
      tracks,
      subtitles: NO_SUBTITLES,
      cuts,
      endSeconds,
    });
  }, wishes.signal);
}
