import { MATROSKA, WEBM } from "mediabunny";
import { SluiceError } from "../base/errors.ts";
import { voidHead } from "../media/ebml.ts";
import type { BlockCache } from "./block-cache.ts";
import { ClusterFinder, lastBlockSeconds } from "./cluster-finder.ts";
import type { Media } from "./contract.ts";
import { cueSeconds, readMatroskaIndex } from "./matroska-index.ts";
import { keyDistanceSeconds, MatroskaReader } from "./matroska-reader.ts";
import { MatroskaSubtitles } from "./matroska-subtitles.ts";
import { type OpenSettings, readTracks } from "./media-tracks.ts";
import { createPacketMedia } from "./packet-media.ts";
import { evenCuts, mergeTail, planCuts } from "./segment-plan.ts";

/** The assumed duration of the last frame if the file states no duration. */
const FRAME_SECONDS = 0.04;
/** The smallest element that a Void element can replace: its head takes this many bytes. */
const VOID_HEAD_BYTES = 9;

/**
 * Opens a Matroska or WebM file. Without cues (a recorded broadcast) segments are planned at even times and each begins with the
 * first key frame at or after its planned time; durations are then accurate to about one group of pictures.
 */
export async function openMatroska(cache: BlockCache, settings: OpenSettings): Promise<Media> {
  const { targetSeconds, signal } = settings;
  const index = await readMatroskaIndex(cache, signal);
  // mediabunny would read fonts and pictures in full: it sees Void elements in their place.
  const large = index.attachments.filter(({ at, end }) => end - at >= VOID_HEAD_BYTES);
  const patches = new Map(large.map(({ at, end }) => [at, voidHead(end - at)]));
  const tracks = await readTracks(cache, [MATROSKA, WEBM], settings, patches);
  const leading = tracks[0];
  if (!leading) throw new SluiceError("broken_media", "the Matroska file has no video or audio tracks");
  const endSeconds = index.durationSeconds ?? (await lastBlockSeconds(cache, index, signal)) + FRAME_SECONDS;
  const keys = cueSeconds(index, leading.id);
  const hasUnknownKeys = keys.length === 0 && leading.kind === "video";
  const gridSeconds = hasUnknownKeys ? await keyDistanceSeconds(cache, index, leading.id, signal) : 0;
  const cuts =
    keys.length > 0
      ? mergeTail(planCuts(keys, targetSeconds), endSeconds, targetSeconds)
      : evenCuts(0, endSeconds, targetSeconds, gridSeconds);
  const finder = new ClusterFinder(cache, index, leading.id, endSeconds);
  const parts = {
    container: "matroska" as const,
    source: cache.source,
    reader: new MatroskaReader(cache, index, finder, leading.id),
    tracks,
    subtitles: new MatroskaSubtitles(cache, index, finder),
    cuts,
    endSeconds,
  };
  return createPacketMedia(parts, settings);
}
