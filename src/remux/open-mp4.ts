import { SluiceError } from "../base/errors.ts";
import type { BlockCache } from "./block-cache.ts";
import type { Demuxer, DemuxPool } from "./demux-pool.ts";
import { claimedSeconds, planFromIndex } from "./fragment-plan.ts";
import { cutsFromSampleTable, endFromSampleTable } from "./key-index.ts";
import { describeTracks, type SourceTrack } from "./media-tracks.ts";
import { type Mp4Layout, readMp4Layout } from "./mp4-layout.ts";
import { type OpenWishes, orderTracks } from "./open-options.ts";
import { PacketMedia } from "./packet-media.ts";
import { evenCuts, mergeTail, planCuts } from "./segment-plan.ts";
import { NO_SUBTITLES } from "./subtitles.ts";

/** Opens an MP4, MOV or fragmented MP4 file. */
export async function openMp4(cache: BlockCache, pool: DemuxPool, wishes: OpenWishes): Promise<PacketMedia> {
  const layout = await readMp4Layout(cache, wishes.signal);
  if (!layout.moov) throw new SluiceError("broken_media", "an MP4 file without a moov box");
  return pool.run(async (demuxer) => {
    const tracks = orderTracks(await describeTracks(demuxer), wishes.language);
    if (tracks.length === 0)
      throw new SluiceError("broken_media", "an MP4 file without video or audio tracks");
    const plan = await planOf(demuxer, layout, tracks, wishes.targetSeconds);
    if (plan.cuts.length === 0) throw new SluiceError("broken_media", "an MP4 file without a key frame");
    return new PacketMedia({
      container: "mp4",
      pool,
      tracks,
      subtitles: NO_SUBTITLES,
      cuts: mergeTail(plan.cuts, plan.endSeconds, wishes.targetSeconds),
      endSeconds: plan.endSeconds,
    });
  }, wishes.signal);
}

/** The sample table tells everything; an index of fragments as much as we need; without either the fragments are walked. */
async function planOf(
  demuxer: Demuxer,
  layout: Mp4Layout,
  tracks: readonly SourceTrack[],
  targetSeconds: number,
) {
  const first = tracks[0]!;
  const indexes = tracks.map((track) => track.index);
  const index = layout.isFragmented ? await planFromIndex(demuxer, layout, first) : undefined;
  if (index) {
    const claimed = layout.moov && claimedSeconds(layout.moov);
    const endSeconds = index.endSeconds ?? claimed ?? (await endFromSampleTable(demuxer, indexes));
    return { cuts: planCuts(index.keySeconds, targetSeconds), endSeconds };
  }
  const endSeconds = await endFromSampleTable(demuxer, indexes);
  if (first.kind !== "video") return { cuts: evenCuts(0, endSeconds, targetSeconds), endSeconds };
  return { cuts: await cutsFromSampleTable(demuxer, first.index, targetSeconds), endSeconds };
}
