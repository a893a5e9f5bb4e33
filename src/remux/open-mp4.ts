import { MP4, QTFF } from "mediabunny";
import { SluiceError } from "../base/errors.ts";
import { parseTrackExtends } from "../media/mp4-moof.ts";
import { type Mp4Samples, parseMp4Samples } from "../media/mp4-samples.ts";
import type { BlockCache } from "./block-cache.ts";
import type { Media } from "./contract.ts";
import { planFragments } from "./fragment-plan.ts";
import { Fragments } from "./fragments.ts";
import { type OpenSettings, readTracks, type SourceTrack } from "./media-tracks.ts";
import { boxAt, readMp4Layout } from "./mp4-layout.ts";
import { endSeconds, keySeconds, Mp4Reader } from "./mp4-reader.ts";
import { Mp4Subtitles } from "./mp4-subtitles.ts";
import { createPacketMedia } from "./packet-media.ts";
import { rawMedia } from "./raw-media.ts";
import { evenCuts, mergeTail, planCuts } from "./segment-plan.ts";

/** Opens an MP4, MOV or fragmented MP4 file. Rejects with `SluiceError("broken_media")` if it has no frames to play. */
export async function openMp4(cache: BlockCache, settings: OpenSettings): Promise<Media> {
  const { targetSeconds, signal } = settings;
  const layout = await readMp4Layout(cache, signal);
  const { moov } = layout;
  if (!moov) throw new SluiceError("broken_media", "the MP4 file has no moov box");
  const tracks = await readTracks(cache, [MP4, QTFF], settings);
  const leading = tracks[0];
  if (!leading) throw new SluiceError("broken_media", "the MP4 file has no video or audio tracks");
  const tables = parseMp4Samples(moov, cache.size);
  // Cuts between key frames cannot be remuxed, and players apply them themselves.
  if (tables.some(({ trackId, hasCuts }) => hasCuts && tracks.some(({ id }) => id === trackId)))
    return rawMedia({ name: "multi-edit MP4", mime: leading.kind === "video" ? "video/mp4" : "audio/mp4" });
  const firstBoxEnd = layout.isFragmented ? ((await boxAt(cache, 0, signal))?.end ?? 0) : 0;
  const plan = layout.isFragmented
    ? await planFragments(
        new Fragments(cache, tables, parseTrackExtends(moov), leading.id, firstBoxEnd),
        layout,
        targetSeconds,
        signal,
      )
    : { ...planSamples(tables, tracks, targetSeconds), reader: new Mp4Reader(cache.source, tables) };
  if (plan.cuts.length === 0) throw new SluiceError("broken_media", "the MP4 file has no key frame");
  const parts = {
    container: "mp4" as const,
    source: cache.source,
    reader: plan.reader,
    tracks,
    subtitles: new Mp4Subtitles(cache.source, layout.isFragmented ? [] : tables),
    cuts: mergeTail(plan.cuts, plan.endSeconds, targetSeconds),
    endSeconds: plan.endSeconds,
  };
  return createPacketMedia(parts, settings);
}

/** Plans the cuts from the sample tables alone. */
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
