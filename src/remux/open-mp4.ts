import { SluiceError } from "../base/errors.ts";
import { type Mp4Samples, parseMp4Samples } from "../media/mp4-samples.ts";
import type { BlockCache } from "./block-cache.ts";
import type { Demuxer, DemuxPool } from "./demux-pool.ts";
import { DemuxReader } from "./demux-reader.ts";
import { claimedSeconds, planFromIndex } from "./fragment-plan.ts";
import { cutsFromSampleTable, endFromSampleTable } from "./key-index.ts";
import { describeTracks, type SourceTrack } from "./media-tracks.ts";
import { type Mp4Layout, readMp4Layout } from "./mp4-layout.ts";
import { endSeconds, keySeconds, Mp4Reader } from "./mp4-reader.ts";
import { Mp4Subtitles } from "./mp4-subtitles.ts";
import { type OpenWishes, orderTracks } from "./open-options.ts";
import { PacketMedia } from "./packet-media.ts";
import { evenCuts, mergeTail, planCuts } from "./segment-plan.ts";

interface Plan {
  readonly cuts: number[];
  readonly endSeconds: number;
}

/** Opens an MP4, MOV or fragmented MP4 file. */
export async function openMp4(cache: BlockCache, pool: DemuxPool, wishes: OpenWishes): Promise<PacketMedia> {
  const { targetSeconds, signal } = wishes;
  const layout = await readMp4Layout(cache, signal);
  const { moov } = layout;
  if (!moov) throw new SluiceError("broken_media", "an MP4 file without a moov box");
  const media = await pool.run(async (demuxer) => {
    const tracks = orderTracks(await describeTracks(demuxer), wishes.language);
    if (tracks.length === 0)
      throw new SluiceError("broken_media", "an MP4 file without video or audio tracks");
    const tables = layout.isFragmented ? [] : parseMp4Samples(moov, cache.size);
    const plan = layout.isFragmented
      ? await planFragments(demuxer, layout, tracks, targetSeconds)
      : planSamples(tables, tracks, targetSeconds);
    if (plan.cuts.length === 0) throw new SluiceError("broken_media", "an MP4 file without a key frame");
    return new PacketMedia({
      container: "mp4",
      reader: layout.isFragmented ? new DemuxReader(pool) : new Mp4Reader(cache.source, tables),
      tracks,
      subtitles: new Mp4Subtitles(cache.source, tables),
      cuts: mergeTail(plan.cuts, plan.endSeconds, targetSeconds),
      endSeconds: plan.endSeconds,
    });
  }, signal);
  // The sample tables took its place.
  if (!layout.isFragmented) pool.close();
  return media;
}

/** The sample tables tell everything. */
function planSamples(
  tables: readonly Mp4Samples[],
  tracks: readonly SourceTrack[],
  targetSeconds: number,
): Plan {
  const used = tables.filter(({ trackId }) => tracks.some(({ id }) => id === trackId));
  const end = used.reduce((most, table) => Math.max(most, endSeconds(table)), 0);
  const first = tracks[0]!;
  if (first.kind !== "video") return { cuts: evenCuts(0, end, targetSeconds), endSeconds: end };
  const table = used.find(({ trackId }) => trackId === first.id);
  return { cuts: table ? planCuts(keySeconds(table), targetSeconds) : [], endSeconds: end };
}

/** An index of fragments tells as much as we need; without one the fragments are walked. */
async function planFragments(
  demuxer: Demuxer,
  layout: Mp4Layout,
  tracks: readonly SourceTrack[],
  targetSeconds: number,
): Promise<Plan> {
  const first = tracks[0]!;
  const indexes = tracks.map((track) => track.index);
  const index = await planFromIndex(demuxer, layout, first);
  if (index) {
    const claimed = layout.moov && claimedSeconds(layout.moov);
    const end = index.endSeconds ?? claimed ?? (await endFromSampleTable(demuxer, indexes));
    return { cuts: planCuts(index.keySeconds, targetSeconds), endSeconds: end };
  }
  const end = await endFromSampleTable(demuxer, indexes);
  if (first.kind !== "video") return { cuts: evenCuts(0, end, targetSeconds), endSeconds: end };
  return { cuts: await cutsFromSampleTable(demuxer, first.index, targetSeconds), endSeconds: end };
}
