import type { AbortSignalLike } from "../base/byte-source.ts";
import { readU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { findMp4Box, readU64 } from "../media/mp4-boxes.ts";
import type { FragmentEntry } from "../media/mp4-index.ts";
import { CheckedBorders, type FragmentBorder, IndexedBorders, SearchedBorders } from "./fragment-finder.ts";
import { FragmentReader } from "./fragment-reader.ts";
import type { FragmentPlace, Fragments } from "./fragments.ts";
import type { Mp4Layout } from "./mp4-layout.ts";
import { evenCuts, planCuts } from "./segment-plan.ts";

/** Where a fragmented file is cut, and who reads it so. */
export interface FragmentPlan {
  readonly cuts: number[];
  readonly endSeconds: number;
  readonly reader: FragmentReader;
}

/** Without an index: files up to this size are walked from fragment to fragment, so that every duration is exact. */
const WALK_BYTES = 4 * 1024 * 1024;
/** How far from the end the last fragment is looked for; where it is larger, the bit rate of the first tells the length. */
const TAIL_BYTES = 4 * 1024 * 1024;

/**
 * The plan of a fragmented file: from its index, or, without one, at even times that are found when they are asked for. Undefined
 * where its fragments do not tell their times.
 */
export async function planFragments(
  fragments: Fragments,
  layout: Mp4Layout,
  targetSeconds: number,
  signal?: AbortSignalLike,
): Promise<FragmentPlan | undefined> {
  const firstAt = fragments.head ? 0 : layout.firstFragment;
  if (firstAt === undefined) return undefined;
  let first: FragmentPlace | undefined;
  try {
    first = await fragments.nextPlace(firstAt, fragments.cache.size, signal);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
  }
  if (!first) return undefined;
  const index = layout.segmentIndexes
    .filter((one) => !one.isNested && one.entries.length > 1)
    .sort((a, b) => Number(b.trackId === fragments.leading) - Number(a.trackId === fragments.leading))[0];
  const scale = index?.timescale ?? fragments.tables.get(fragments.leading)?.timescale ?? 1;
  const entries = index?.entries ?? layout.fragmentAccess.get(fragments.leading) ?? [];
  const indexed = entries.length > 0 ? await bordersOf(fragments, entries, scale, first, signal) : undefined;
  const told =
    indexed && (index ? index.end / scale + indexed.shift : await endAfter(fragments, indexed, signal));
  const claimed = layout.moov && claimedSeconds(layout.moov);
  const endSeconds = told ?? claimed ?? (await lastEnd(fragments, first, signal));
  const isSmall = fragments.cache.size <= WALK_BYTES;
  const borders = indexed?.borders ?? (isSmall ? await walk(fragments, first, signal) : undefined);
  if (borders) {
    const cuts = planCuts(
      borders.map(({ seconds }) => seconds),
      targetSeconds,
    );
    const isSure = index !== undefined || !indexed;
    const found = isSure ? new IndexedBorders(borders) : new CheckedBorders(fragments, borders);
    return { cuts, endSeconds, reader: new FragmentReader(fragments, found, firstAt) };
  }
  const second = await fragments.nextPlace(first.next, fragments.cache.size, signal);
  const gridSeconds = second?.isKey ? second.seconds - first.seconds : 0;
  const cuts = evenCuts(first.seconds, endSeconds, targetSeconds, gridSeconds);
  const searched = new SearchedBorders(fragments, cuts, first, endSeconds);
  return { cuts, endSeconds, reader: new FragmentReader(fragments, searched, firstAt) };
}

/**
 * Indexes count from other zeros than the packets do (edit lists, decode times): the first sample they name tells the difference.
 * Entries that go backwards, or beyond the file, are left out.
 */
async function bordersOf(
  fragments: Fragments,
  entries: readonly FragmentEntry[],
  scale: number,
  start: FragmentPlace,
  signal?: AbortSignalLike,
): Promise<{ borders: FragmentBorder[]; shift: number } | undefined> {
  const { at, sample, time } = entries[0]!;
  const fragment = await fragments.next(at, fragments.cache.size, signal);
  const own = fragment?.tracks.find(({ trackId }) => trackId === fragments.leading)?.samples[sample];
  const first = own
    ? fragments.secondsOf(fragments.leading, own.shown)
    : (await fragments.nextPlace(at, fragments.cache.size, signal))?.seconds;
  if (first === undefined) return undefined;
  const shift = first - time / scale;
  const borders: FragmentBorder[] = [];
  // An index may leave out what `moov` tells of.
  if (fragments.head && start.seconds < first) borders.push({ at: 0, sample: 0, seconds: start.seconds });
  for (const entry of entries) {
    const border = { at: entry.at, sample: entry.sample, seconds: entry.time / scale + shift };
    const last = borders.at(-1);
    const isLater = !last || (border.seconds > last.seconds && border.at >= last.at);
    if (isLater && border.at < fragments.cache.size) borders.push(border);
  }
  return { borders, shift };
}

/** When the last fragment that an index names ends. */
async function endAfter(
  fragments: Fragments,
  { borders }: { borders: readonly FragmentBorder[] },
  signal?: AbortSignalLike,
): Promise<number | undefined> {
  const last = await fragments.next(borders.at(-1)!.at, fragments.cache.size, signal);
  const end = last ? fragments.endOf(last) : Number.NEGATIVE_INFINITY;
  return Number.isFinite(end) ? end : undefined;
}

/** Where every fragment lies that has a key frame. */
async function walk(
  fragments: Fragments,
  first: FragmentPlace,
  signal?: AbortSignalLike,
): Promise<FragmentBorder[]> {
  const borders: FragmentBorder[] = [];
  let place: FragmentPlace | undefined = first;
  while (place) {
    const { at, sample, seconds, isKey }: FragmentPlace = place;
    const isLater = seconds > (borders.at(-1)?.seconds ?? Number.NEGATIVE_INFINITY);
    if (isLater && (isKey || borders.length === 0)) borders.push({ at, sample, seconds });
    place = await fragments.nextPlace(place.next, fragments.cache.size, signal);
  }
  return borders;
}

/** When the last fragment ends; where it is not found near the end, as the bit rate of the first one says. */
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
