import { readU32 } from "../base/bytes.ts";
import { findMp4Box, readU64 } from "../media/mp4-boxes.ts";
import type { Demuxer } from "./demux-pool.ts";
import type { SourceTrack } from "./media-tracks.ts";
import type { Mp4Layout } from "./mp4-layout.ts";

/** When the runs of a fragmented file begin, and when it ends, in the time of the file. */
export interface FragmentPlan {
  readonly keySeconds: readonly number[];
  readonly endSeconds: number | undefined;
}

/**
 * The plan from an index of fragments, or undefined where the file has none. Indexes count from other zeros than the
 * packets do (edit lists, decode times): the first key frame tells the difference.
 */
export async function planFromIndex(
  demuxer: Demuxer,
  layout: Mp4Layout,
  track: SourceTrack,
): Promise<FragmentPlan | undefined> {
  const input = demuxer.tracks[track.index]!;
  const index = layout.segmentIndexes
    .filter((one) => !one.isNested && one.entries.length > 1)
    .sort((a, b) => Number(b.trackId === input.id) - Number(a.trackId === input.id))[0];
  const access = layout.fragmentAccess.get(input.id);
  const entries = index?.entries ?? access;
  if (!entries || entries.length === 0) return undefined;
  const timescale = index?.timescale ?? (await input.getTimeResolution());
  const first = await demuxer.sink(track.index).getFirstPacket({ metadataOnly: true });
  const shift = (first?.timestamp ?? 0) - entries[0]!.time / timescale;
  const keySeconds = entries.map(({ time }) => time / timescale + shift);
  return {
    keySeconds: keySeconds.filter((time, i) => i === 0 || time > keySeconds[i - 1]!),
    endSeconds: index && index.end / timescale + shift,
  };
}

/** The length a fragmented file claims in `mehd` or `mvhd` (ISO 14496-12 8.8.2, 8.2.2), in seconds. */
export function claimedSeconds(moov: Uint8Array): number | undefined {
  const header = findMp4Box(moov, 0, moov.length, ["mvhd"]);
  if (!header || header.end - header.start < 32) return undefined;
  const isLong = moov[header.start] === 1;
  const timescale = readU32(moov, header.start + (isLong ? 20 : 12));
  const extended = findMp4Box(moov, 0, moov.length, ["mvex", "mehd"]);
  const own = isLong ? readU64(moov, header.start + 24) : readU32(moov, header.start + 16);
  const long = extended && extended.end - extended.start >= 12 && moov[extended.start] === 1;
  const duration =
    extended && extended.end - extended.start >= 8
      ? long
        ? readU64(moov, extended.start + 4)
        : readU32(moov, extended.start + 4)
      : own;
  return timescale > 0 && duration > 0 && duration < 0xffffffff ? duration / timescale : undefined;
}
