import type { AbortSignalLike } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import { EBML_HEAD_BYTES, type EbmlHead, readEbmlHead } from "../media/ebml.ts";
import { type MatroskaCue, parseMatroskaCues } from "../media/matroska-cues.ts";
import {
  MATROSKA,
  type MatroskaTrack,
  parseMatroskaTracks,
  parseSeekHead,
  parseSegmentInfo,
} from "../media/matroska-head.ts";
import type { BlockCache } from "./block-cache.ts";

/** What the head of a Matroska file says. */
export interface MatroskaIndex {
  readonly tickSeconds: number;
  readonly durationSeconds: number | undefined;
  readonly tracks: readonly MatroskaTrack[];
  /** Where the data of the segment begin: positions are counted from here. */
  readonly dataStart: number;
  readonly dataEnd: number;
  /** Where the first cluster begins in the file. */
  readonly firstCluster: number;
  /** Fonts and pictures before the first cluster: the library would read them all. */
  readonly attachments: readonly EbmlRange[];
  /** Sorted by time; empty where the file has none. */
  readonly cues: readonly MatroskaCue[];
}

/** Where an element lies in the file, its head included. */
export interface EbmlRange {
  readonly at: number;
  readonly start: number;
  readonly end: number;
}

/** Elements before the first cluster: seek heads, info, tracks, tags, fonts … */
const ELEMENTS_LIMIT = 64;
/** The index of a week is a few MB. */
const ELEMENT_LIMIT_BYTES = 32 * 1024 * 1024;

/** Reads the head and the cues; rejects with `SluiceError("broken_media")` where there is no segment or no tracks. */
export async function readMatroskaIndex(cache: BlockCache, signal?: AbortSignalLike): Promise<MatroskaIndex> {
  const ebml = await headAt(cache, 0, signal);
  const segment = ebml?.end === undefined ? undefined : await headAt(cache, ebml.end, signal);
  if (segment?.id !== MATROSKA.segment) throw broken("no segment");
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
    if (element.end === undefined) throw broken("an element of unknown size");
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
  if (!tracks) throw broken("no tracks");
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

/** The times of the key frames of a track, from its cues (or, where it has none, from those of any track). */
export function cueSeconds(index: MatroskaIndex, trackNumber: number): number[] {
  const own = index.cues.filter((cue) => cue.track === trackNumber);
  const times = (own.length > 0 ? own : index.cues).map((cue) => cue.time * index.tickSeconds);
  return times.filter((time, i) => i === 0 || time > times[i - 1]!);
}

/** The element head at a place of the file, its offsets counted in the file. */
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
  if (end - element.start > ELEMENT_LIMIT_BYTES) throw broken("an element of the head that is too large");
  return end > element.start ? cache.read(element.start, end, signal) : new Uint8Array(0);
}

function isWanted(id: number): boolean {
  return id === MATROSKA.seekHead || id === MATROSKA.info || id === MATROSKA.tracks || id === MATROSKA.cues;
}

function broken(what: string): SluiceError {
  return new SluiceError("broken_media", `a Matroska file with ${what}`);
}
