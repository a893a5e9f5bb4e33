import { SluiceError } from "../base/errors.ts";
import type { BlockCache } from "./block-cache.ts";
import type { DemuxPool } from "./demux-pool.ts";
import { cutsFromSampleTable, endFromSampleTable } from "./key-index.ts";
import { describeTracks } from "./media-tracks.ts";
import { type OpenWishes, orderTracks } from "./open-options.ts";
import { PacketMedia } from "./packet-media.ts";
import { evenCuts, mergeTail } from "./segment-plan.ts";
import { NO_SUBTITLES } from "./subtitles.ts";

/** Opens an MP4, MOV or fragmented MP4 file. */
export async function openMp4(_cache: BlockCache, pool: DemuxPool, wishes: OpenWishes): Promise<PacketMedia> {
  return pool.run(async (demuxer) => {
    const tracks = orderTracks(await describeTracks(demuxer), wishes.language);
    if (tracks.length === 0)
      throw new SluiceError("broken_media", "an MP4 file without video or audio tracks");
    const indexes = tracks.map((track) => track.index);
    const endSeconds = await endFromSampleTable(demuxer, indexes);
    const first = tracks[0]!;
    const cuts =
      first.kind === "video"
        ? mergeTail(await cutsFromSampleTable(demuxer, first.index, wishes.targetSeconds), endSeconds, wishes)
        : evenCuts(0, endSeconds, wishes.targetSeconds);
    if (cuts.length === 0) throw new SluiceError("broken_media", "an MP4 file without a key frame");
    return new PacketMedia({ container: "mp4", pool, tracks, subtitles: NO_SUBTITLES, cuts, endSeconds });
  }, wishes.signal);
}
