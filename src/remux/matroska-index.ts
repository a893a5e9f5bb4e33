import type { AbortSignalLike } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import { EBML_HEAD_BYTES, type EbmlHead, readEbmlHead } from "../media/ebml.ts";

import {
  MATROSKA,
  type MatroskaCue,
  type MatroskaTrack,
  parseMatroskaCues,
  parseMatroskaTracks,
  parseSeekHead,
  parseSegmentInfo,
} from "../media/matroska-head.ts";
import type { BlockCache } from "./block-cache.ts";

/** The head and the cues of a Matroska file. */
export interface MatroskaIndex {
  readonly tickSeconds: number;
  readonly durationSeconds: number | undefined;
  readonly tracks: readonly MatroskaTrack[];
  /** Byte position of the first child of the Segment; positions in the file are relative to it (RFC 9559 5.1.1). */
  readonly dataStart: number;
  readonly dataEnd: number;
  /** Byte position of the first cluster. */
  readonly firstCluster: number;
  /** Fonts and pictures before the first cluster. */
  readonly attachments: readonly EbmlRange[];
  /** Sorted by time; empty if the file has none. */
  readonly cues: readonly MatroskaCue[];
}

/** The byte range of an element: `at` is its head, `[start, end)` its content. */
interface EbmlRange {
  readonly at: number;
  readonly start: number;
  readonly end: number;
}

/** Limit of elements before the first cluster: seek heads, info, tracks, tags, fonts, … */
const ELEMENTS_LIMIT = 64;
/** Limit of a head element; the cues of a week of video take a few MB. */
const ELEMENT_LIMIT_BYTES = 32 * 1024 * 1024;

/** Reads the head and the cues. Rejects with `SluiceError("broken_media")` if there is no Segment or no Tracks element. */
export async function readMatroskaIndex(cache: BlockCache, signal?: AbortSignalLike): Promise<MatroskaIndex> {
  const ebml = await headAt(cache, 0, signal);
  const segment = ebml?.end === undefined ? undefined : await headAt(cache, ebml.end, signal);
  if (segment?.id !== MATROSKA.segment) throw broken("has no Segment element");
  const dataStart = segment.start;
  const dataEnd = Math.min(segment.end ?? cache.size, cache.size);
  const found = new Map<number, Uint8Array>();
  let seeks = new Map<number, number>();
  const attachments: EbmlRange[] = [];
  let firstCluster = dataEnd;
  let at = dataStart;
  for (let i = 0; i < ELEMENTS_LIMIT && at < dataEnd; i++) {
    const element = await headAt(cache, at, signal);
    if (!element || element.id === MATROSKA.cluster) {
      firstCluster = at;
      break;
    }
    if (element.end === undefined) throw broken("has an element of unknown size in its head");
    if (isWanted(element.id)) {
      const bytes = await bodyOf(cache, element, signal);
      if (element.id === MATROSKA.seekHead) seeks = new Map([...parseSeekHead(bytes), ...seeks]);
      else found.set(element.id, bytes);
    }
    if (element.id === MATROSKA.attachments) attachments.push({ at, start: element.start, end: element.end });
    at = element.end;
  }
  for (const id of [MATROSKA.info, MATROSKA.tracks, MATROSKA.cues]) {
    const position = seeks.get(id);
    if (found.has(id) || position === undefined || dataStart + position >= cache.size) continue;
    const element = await headAt(cache, dataStart + position, signal);
    if (element?.id === id) found.set(id, await bodyOf(cache, element, signal));
  }
  const tracks = found.get(MATROSKA.tracks);
  if (!tracks) throw broken("has no Tracks element");
  const cues = found.get(MATROSKA.cues);
  return {
    ...parseSegmentInfo(found.get(MATROSKA.info) ?? new Uint8Array(0)),
    tracks: parseMatroskaTracks(tracks),
    dataStart,
    dataEnd,
    firstCluster,
    attachments,
    cues: cues ? parseMatroskaCues(cues) : [],
  };
}

/** The key frame times of a track in seconds, from its cues, or from the cues of all tracks if it has none. */
export function cueSeconds(index: MatroskaIndex, trackNumber: number): number[] {
  const own = index.cues.filter((cue) => cue.track === trackNumber);
  const times = (own.length > 0 ? own : index.cues).map((cue) => cue.time * index.tickSeconds);
  return times.filter((time, i) => i === 0 || time > times[i - 1]!);
}

/** Reads the element head at a byte position; its offsets are byte positions in the file. */
async function headAt(
  cache: BlockCache,
  at: number,
  signal?: AbortSignalLike,
): Promise<EbmlHead | undefined> {
  const end = Math.min(at + EBML_HEAD_BYTES, cache.size);
  if (at >= end) return undefined;
  const head = readEbmlHead(await cache.read(at, end, signal), 0);
  return (
    head && { id: head.id, start: at + head.start, end: head.end === undefined ? undefined : at + head.end }
  );
}

async function bodyOf(cache: BlockCache, element: EbmlHead, signal?: AbortSignalLike): Promise<Uint8Array> {
  const end = Math.min(element.end ?? cache.size, cache.size);
  if (end - element.start > ELEMENT_LIMIT_BYTES) throw broken("has a head element of more than 32 MiB");
  return end > element.start ? cache.read(element.start, end, signal) : new Uint8Array(0);
}

function isWanted(id: number): boolean {
  return id === MATROSKA.seekHead || id === MATROSKA.info || id === MATROSKA.tracks || id === MATROSKA.cues;
}

function broken(problem: string): SluiceError {
  return new SluiceError("broken_media", `the Matroska file ${problem}`);
}
