import { SluiceError } from "../base/errors.ts";
import { parseTrackExtends } from "../media/mp4-moof.ts";
import { type Mp4Samples, parseMp4Samples } from "../media/mp4-samples.ts";
import type { BlockCache } from "./block-cache.ts";
import type { Demuxer, DemuxPool } from "./demux-pool.ts";
import { DemuxReader } from "./demux-reader.ts";
import { planFragments } from "./fragment-plan.ts";
import { Fragments } from "./fragments.ts";
import { cutsFromSampleTable, endFromSampleTable } from "./key-index.ts";
import { describeTracks, type SourceTrack } from "./media-tracks.ts";
import { boxAt, type Mp4Layout, readMp4Layout } from "./mp4-layout.ts";
import { endSeconds, keySeconds, Mp4Reader } from "./mp4-reader.ts";
import { Mp4Subtitles } from "./mp4-subtitles.ts";
import { type OpenWishes, orderTracks } from "./open-options.ts";
import { PacketMedia } from "./packet-media.ts";
import type { PacketReader } from "./packet-reader.ts";
import { evenCuts, mergeTail, planCuts } from "./segment-plan.ts";

interface Plan {
  readonly cuts: number[];
  readonly endSeconds: number;
  readonly reader: PacketReader;
}

/** Opens an MP4, MOV or fragmented MP4 file. */
export async function openMp4(cache: BlockCache, pool: DemuxPool, wishes: OpenWishes): Promise<PacketMedia> {
  const { targetSeconds, signal } = wishes;
  const layout = await readMp4Layout(cache, signal);
  const { moov } = layout;
  if (!moov) throw new SluiceError("broken_media", "an MP4 file without a moov box");
  const tracks = await pool.run(
    async (demuxer) => orderTracks(await describeTracks(demuxer), wishes.language),
    signal,
  );
  if (tracks.length === 0) throw new SluiceError("broken_media", "an MP4 file without video or audio tracks");
  const tables = parseMp4Samples(moov, cache.size);
  const plan = layout.isFragmented
    ? await planFragmented(cache, pool, layout, moov, tables, tracks, wishes)
    : { ...planSamples(tables, tracks, targetSeconds), reader: new Mp4Reader(cache.source, tables) };
  if (plan.cuts.length === 0) throw new SluiceError("broken_media", "an MP4 file without a key frame");
  // Our own readers took its place.
  if (!(plan.reader instanceof DemuxReader)) pool.close();
  return new PacketMedia({
    container: "mp4",
    reader: plan.reader,
    tracks,
    subtitles: new Mp4Subtitles(cache.source, layout.isFragmented ? [] : tables),
    cuts: mergeTail(plan.cuts, plan.endSeconds, targetSeconds),
    endSeconds: plan.endSeconds,
  });
}

/** Files whose fragments tell no times are left to the library. */
async function planFragmented(
  cache: BlockCache,
  pool: DemuxPool,
  layout: Mp4Layout,
  moov: Uint8Array,
  tables: readonly Mp4Samples[],
  tracks: readonly SourceTrack[],
  { targetSeconds, signal }: OpenWishes,
): Promise<Plan> {
  const firstBoxEnd = (await boxAt(cache, 0, signal))?.end ?? 0;
  const fragments = new Fragments(cache, tables, parseTrackExtends(moov), tracks[0]!.id, firstBoxEnd);
  const own = await planFragments(fragments, layout, targetSeconds, signal);
  if (own) return own;
  const walked = await pool.run((demuxer) => planWalked(demuxer, tracks, targetSeconds), signal);
  return { ...walked, reader: new DemuxReader(pool) };
}

/** The sample tables tell everything. */
function planSamples(
  tables: readonly Mp4Samples[],
  tracks: readonly SourceTrack[],
  targetSeconds: number,
): { cuts: number[]; endSeconds: number } {
  const used = tables.filter(({ trackId }) => tracks.some(({ id }) => id === trackId));
  const end = used.reduce((most, table) => Math.max(most, endSeconds(table)), 0);
  const first = tracks[0]!;
  if (first.kind !== "video") return { cuts: evenCuts(0, end, targetSeconds), endSeconds: end };
  const table = used.find(({ trackId }) => trackId === first.id);
  return { cuts: table ? planCuts(keySeconds(table), targetSeconds) : [], endSeconds: end };
}

/** The fragments are walked, one after another. */
async function planWalked(demuxer: Demuxer, tracks: readonly SourceTrack[], targetSeconds: number) {
  const first = tracks[0]!;
  const end = await endFromSampleTable(
    demuxer,
    tracks.map((track) => track.index),
  );
  if (first.kind !== "video") return { cuts: evenCuts(0, end, targetSeconds), endSeconds: end };
  return { cuts: await cutsFromSampleTable(demuxer, first.index, targetSeconds), endSeconds: end };
}
