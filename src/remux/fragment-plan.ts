import type { AbortSignalLike } from "../base/byte-source.ts";
import { readU32 } from "../base/bytes.ts";
import { DecodeError, SluiceError } from "../base/errors.ts";
import { findMp4Box, readU64 } from "../media/mp4-boxes.ts";
import type { FragmentEntry } from "../media/mp4-index.ts";
import {
  CheckedBoundaries,
  type FragmentBoundary,
  IndexedBoundaries,
  SearchedBoundaries,
} from "./fragment-finder.ts";
import { FragmentReader } from "./fragment-reader.ts";
import type { FragmentPlace, Fragments } from "./fragments.ts";
import type { Mp4Layout } from "./mp4-layout.ts";
import { evenCuts, planCuts } from "./segment-plan.ts";

/** The cuts of a fragmented file, and the reader for them. */
interface FragmentPlan {
  readonly cuts: number[];
  readonly endSeconds: number;
  readonly reader: FragmentReader;
}

/** Files up to this size that have no index are read fragment by fragment, so that every duration is exact. */
const WALK_BYTES = 4 * 1024 * 1024;
/** How far from the end the last fragment is searched for. If it is not found, the duration is estimated from the bit rate. */
const TAIL_BYTES = 4 * 1024 * 1024;

/**
 * Plans the segments of a fragmented file: from its index, or, without an index, at even times whose fragments are searched for
 * when a segment is requested. Rejects with `SluiceError("broken_media")` if no fragment has frames of the leading track.
 */
export async function planFragments(
  fragments: Fragments,
  layout: Mp4Layout,
  targetSeconds: number,
  signal?: AbortSignalLike,
): Promise<FragmentPlan> {
  const firstAt = fragments.head ? 0 : layout.firstFragment;
  const first = firstAt === undefined ? undefined : await firstPlace(fragments, firstAt, signal);
  if (firstAt === undefined || !first)
    throw new SluiceError("broken_media", "the fragmented MP4 file has no fragment with frames to play");
  const index = layout.segmentIndexes
    .filter(({ isNested, entries }) => !isNested && entries.length > 1)
    .sort((a, b) => Number(b.trackId === fragments.leading) - Number(a.trackId === fragments.leading))[0];
  const scale = index?.timescale ?? fragments.tables.get(fragments.leading)?.timescale ?? 1;
  const entries = index?.entries ?? layout.fragmentAccess.get(fragments.leading) ?? [];
  const indexed =
    entries.length > 0 ? await boundariesOf(fragments, entries, scale, first, signal) : undefined;
  const indexedEnd =
    indexed && (index ? index.end / scale + indexed.shift : await endAfter(fragments, indexed, signal));
  const claimed = layout.moov && claimedSeconds(layout.moov);
  const endSeconds = indexedEnd ?? claimed ?? (await lastEnd(fragments, first, signal));
  const isSmall = fragments.cache.size <= WALK_BYTES;
  const boundaries = indexed?.boundaries ?? (isSmall ? await walk(fragments, first, signal) : undefined);
  if (boundaries) {
    const cuts = planCuts(
      boundaries.map(({ seconds }) => seconds),
      targetSeconds,
    );
    const isExact = index !== undefined || !indexed;
    const found = isExact ? new IndexedBoundaries(boundaries) : new CheckedBoundaries(fragments, boundaries);
    return { cuts, endSeconds, reader: new FragmentReader(fragments, found, firstAt) };
  }
  const second = await fragments.nextPlace(first.next, fragments.cache.size, signal);
  const gridSeconds = second?.isKey ? second.seconds - first.seconds : 0;
  const cuts = evenCuts(first.seconds, endSeconds, targetSeconds, gridSeconds);
  const searched = new SearchedBoundaries(fragments, cuts, first, endSeconds);
  return { cuts, endSeconds, reader: new FragmentReader(fragments, searched, firstAt) };
}

/** Finds the first fragment of the leading track. If the file has no decode times, computes them for all fragments. */
async function firstPlace(
  fragments: Fragments,
  firstAt: number,
  signal?: AbortSignalLike,
): Promise<FragmentPlace | undefined> {
  const { size } = fragments.cache;
  try {
    const place = await fragments.nextPlace(firstAt, size, signal);
    // The samples in `moov` always have times; the first fragment shows whether the fragments have them.
    if (fragments.head) await fragments.next(fragments.head.end, size, signal);
    return place;
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
  }
  await fragments.sumDecodeTimes(firstAt, signal);
  return fragments.nextPlace(firstAt, size, signal);
}

/**
 * Converts index entries to boundaries. Index times can have another origin than the samples (edit lists, decode times): the time of
 * the first sample that the index names gives the difference. Drops entries that go backwards or beyond the end of the file.
 */
async function boundariesOf(
  fragments: Fragments,
  entries: readonly FragmentEntry[],
  scale: number,
  start: FragmentPlace,
  signal?: AbortSignalLike,
): Promise<{ boundaries: FragmentBoundary[]; shift: number } | undefined> {
  const { at, sample, time } = entries[0]!;
  const fragment = await fragments.next(at, fragments.cache.size, signal);
  const own = fragment?.tracks.find(({ trackId }) => trackId === fragments.leading)?.samples[sample];
  const first = own
    ? fragments.secondsOf(fragments.leading, own.pts)
    : (await fragments.nextPlace(at, fragments.cache.size, signal))?.seconds;
  if (first === undefined) return undefined;
  const shift = first - time / scale;
  const boundaries: FragmentBoundary[] = [];
  // An index may omit the samples in `moov`.
  if (fragments.head && start.seconds < first) boundaries.push({ at: 0, sample: 0, seconds: start.seconds });
  for (const entry of entries) {
    const boundary = { at: entry.at, sample: entry.sample, seconds: entry.time / scale + shift };
    const last = boundaries.at(-1);
    const isLater = !last || (boundary.seconds > last.seconds && boundary.at >= last.at);
    if (isLater && boundary.at < fragments.cache.size) boundaries.push(boundary);
  }
  return { boundaries, shift };
}

/** The end of the last fragment in the index, in seconds. */
async function endAfter(
  fragments: Fragments,
  { boundaries }: { boundaries: readonly FragmentBoundary[] },
  signal?: AbortSignalLike,
): Promise<number | undefined> {
  const last = await fragments.next(boundaries.at(-1)!.at, fragments.cache.size, signal);
  const end = last ? fragments.endOf(last) : Number.NEGATIVE_INFINITY;
  return Number.isFinite(end) ? end : undefined;
}

/** Finds every fragment with a key frame by reading the heads of all fragments. */
async function walk(
  fragments: Fragments,
  first: FragmentPlace,
  signal?: AbortSignalLike,
): Promise<FragmentBoundary[]> {
  const boundaries: FragmentBoundary[] = [];
  let place: FragmentPlace | undefined = first;
  while (place) {
    const { at, sample, seconds, isKey }: FragmentPlace = place;
    const isLater = seconds > (boundaries.at(-1)?.seconds ?? Number.NEGATIVE_INFINITY);
    if (isLater && (isKey || boundaries.length === 0)) boundaries.push({ at, sample, seconds });
    place = await fragments.nextPlace(place.next, fragments.cache.size, signal);
  }
  return boundaries;
}

/** The end of the last fragment in seconds; estimated from the bit rate of the first if no fragment is found near the end. */
async function lastEnd(
  fragments: Fragments,
  first: FragmentPlace,
  signal?: AbortSignalLike,
): Promise<number> {
  const { size } = fragments.cache;
  let to = size;
  const lowest = Math.max(first.at, size - TAIL_BYTES);
  while (to > lowest) {
    const at = await fragments.find(lowest, to, "last", signal);
    if (at === undefined) break;
    const fragment = await fragments.next(at, at + 1, signal);
    const end = fragment ? fragments.endOf(fragment) : Number.NEGATIVE_INFINITY;
    if (Number.isFinite(end)) return end;
    to = at;
  }
  const second = await fragments.nextPlace(first.next, size, signal);
  if (!second || second.seconds <= first.seconds) return first.seconds;
  const secondsPerByte = (second.seconds - first.seconds) / (second.at - first.at);
  return first.seconds + (size - first.at) * secondsPerByte;
}

/** The duration in `mehd` or `mvhd` (ISO 14496-12 8.8.2, 8.2.2), in seconds; undefined if neither states one. */
function claimedSeconds(moov: Uint8Array): number | undefined {
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
