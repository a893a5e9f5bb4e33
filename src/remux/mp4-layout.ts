import type { AbortSignalLike } from "../base/byte-source.ts";
import { readU32 } from "../base/bytes.ts";
import { findMp4Box, MP4_HEAD_BYTES, type Mp4Box, readMp4Box } from "../media/mp4-boxes.ts";
import {
  type FragmentEntry,
  parseFragmentAccess,
  parseSegmentIndex,
  type SegmentIndex,
} from "../media/mp4-index.ts";
import type { BlockCache } from "./block-cache.ts";

/** Limit of boxes before the media: `ftyp`, `free`, `uuid`, indexes, … */
const BOXES_LIMIT = 256;
const INDEX_LIMIT_BYTES = 64 * 1024 * 1024;

/** The top-level boxes of an MP4 file. */
export interface Mp4Layout {
  /** The content of `moov`; undefined if it is missing or larger than 64 MiB. */
  readonly moov: Uint8Array | undefined;
  /** True if `moov` has an `mvex` box: the media are in fragments. */
  readonly isFragmented: boolean;
  /** Byte position of the first fragment; undefined if there is none. */
  readonly firstFragment: number | undefined;
  /** The `sidx` boxes before the first fragment. */
  readonly segmentIndexes: readonly SegmentIndex[];
  /** The entries of the `mfra` box at the end of the file, by track id. */
  readonly fragmentAccess: ReadonlyMap<number, readonly FragmentEntry[]>;
}

/** Reads box heads until the layout is known, and the content of `moov` and of the fragment indexes. */
export async function readMp4Layout(cache: BlockCache, signal?: AbortSignalLike): Promise<Mp4Layout> {
  const segmentIndexes: SegmentIndex[] = [];
  let [moov, isFragmented, at]: [Uint8Array | undefined, boolean, number] = [undefined, false, 0];
  let firstFragment: number | undefined;
  for (let i = 0; i < BOXES_LIMIT; i++) {
    const box = await boxAt(cache, at, signal);
    if (!box) break;
    if (box.type === "moov" && !moov) {
      moov = await bodyOf(cache, box, signal);
      isFragmented = moov !== undefined && findMp4Box(moov, 0, moov.length, ["mvex"]) !== undefined;
      if (moov && !isFragmented) break;
    } else if (box.type === "sidx") {
      const body = await bodyOf(cache, box, signal);
      if (body) segmentIndexes.push(parseSegmentIndex(body, box.end));
    } else if (box.type === "moof") {
      firstFragment = box.at;
      break;
    }
    at = box.end;
  }
  const isIndexed = segmentIndexes.some((index) => !index.isNested && index.entries.length > 1);
  const fragmentAccess = isFragmented && !isIndexed ? await readFragmentAccess(cache, signal) : new Map();
  return { moov, isFragmented, firstFragment, segmentIndexes, fragmentAccess };
}

/** Reads the head of the box at byte position `at`; undefined if no box is there. */
export async function boxAt(
  cache: BlockCache,
  at: number,
  signal?: AbortSignalLike,
): Promise<Mp4Box | undefined> {
  const end = Math.min(at + MP4_HEAD_BYTES, cache.size);
  if (end - at < 8) return undefined;
  const box = readMp4Box(await cache.read(at, end, signal), 0, at);
  return box && { ...box, end: Math.min(box.end, cache.size) };
}

/** Reads the `mfra` box, which is the last box of the file if present; its last 4 bytes hold its size (ISO 14496-12 8.8.11). */
async function readFragmentAccess(cache: BlockCache, signal?: AbortSignalLike) {
  const none = new Map<number, FragmentEntry[]>();
  if (cache.size < 32) return none;
  const tail = await cache.read(cache.size - 16, cache.size, signal);
  const length = readU32(tail, 12);
  if (length < 24 || length > Math.min(cache.size, INDEX_LIMIT_BYTES)) return none;
  const box = await boxAt(cache, cache.size - length, signal);
  if (box?.type !== "mfra") return none;
  const body = await bodyOf(cache, box, signal);
  return body ? parseFragmentAccess(body) : none;
}

async function bodyOf(
  cache: BlockCache,
  box: Mp4Box,
  signal?: AbortSignalLike,
): Promise<Uint8Array | undefined> {
  if (box.end - box.start > INDEX_LIMIT_BYTES || box.end <= box.start) return undefined;
  return cache.read(box.start, box.end, signal);
}
