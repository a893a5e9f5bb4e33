import type { AbortSignalLike } from "../base/byte-source.ts";
import { ebmlUint, readEbmlHead } from "../media/ebml.ts";
import { CLUSTER } from "../media/matroska-blocks.ts";
import { MATROSKA } from "../media/matroska-head.ts";
import type { BlockCache } from "./block-cache.ts";
import { type WalkedBlock, walkBlocks } from "./cluster-walk.ts";
import type { MatroskaIndex } from "./matroska-index.ts";

/** Clusters last a few seconds at most, so at least one begins within this many bytes. */
const SEARCH_BYTES = 8 * 1024 * 1024;
const SEARCH_STEP_BYTES = 64 * 1024;
/** Interpolation usually converges in three or four probes; each probe can cost the download of a piece. */
const PROBES_LIMIT = 12;
/** Closer than this, reading forward costs less than another probe. */
const NEAR_BYTES = 1024 * 1024;
const NEAR_SECONDS = 3;

interface Place {
  readonly at: number;
  readonly seconds: number;
}

/**
 * Finds the cluster from which to read for a given time: from the cues, or without cues by probing the file where the time
 * should be. Every cluster before the wanted key frame is a correct answer; a near one saves reading.
 */
export class ClusterFinder {
  readonly #cache: BlockCache;
  readonly #index: MatroskaIndex;
  readonly #endSeconds: number;
  readonly #cues: readonly Place[];

  constructor(cache: BlockCache, index: MatroskaIndex, leading: number, endSeconds: number) {
    this.#cache = cache;
    this.#index = index;
    this.#endSeconds = endSeconds;
    const own = index.cues.filter((cue) => cue.track === leading);
    this.#cues = (own.length > 0 ? own : index.cues)
      .map((cue) => ({ at: index.dataStart + cue.clusterPosition, seconds: cue.time * index.tickSeconds }))
      .filter(({ at }) => at >= index.firstCluster && at < index.dataEnd);
  }

  /** Returns the byte position of a cluster at or before the key frame of `seconds`. */
  async before(seconds: number, signal?: AbortSignalLike): Promise<number> {
    return this.#cues.length > 0 ? this.#byCue(seconds) : this.#bySearch(seconds, signal);
  }

  #byCue(seconds: number): number {
    let [low, high] = [0, this.#cues.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#cues[middle]!.seconds <= seconds + this.#index.tickSeconds / 2) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? this.#index.firstCluster : this.#cues[low - 1]!.at;
  }

  async #bySearch(seconds: number, signal?: AbortSignalLike): Promise<number> {
    let low: Place = { at: this.#index.firstCluster, seconds: 0 };
    let high: Place = { at: this.#index.dataEnd, seconds: Math.max(this.#endSeconds, seconds + 1) };
    for (let i = 0; i < PROBES_LIMIT; i++) {
      if (high.at - low.at < NEAR_BYTES || seconds - low.seconds < NEAR_SECONDS) break;
      const share = (seconds - NEAR_SECONDS / 2 - low.seconds) / Math.max(0.001, high.seconds - low.seconds);
      // Stay away from the edges, so that each probe shrinks the interval.
      const guess = Math.floor(low.at + (high.at - low.at) * Math.min(0.95, Math.max(0.05, share)));
      const place = await this.#clusterAfter(guess, high.at, signal);
      if (place && place.seconds <= seconds) low = place;
      else high = { at: guess, seconds: place?.seconds ?? high.seconds };
    }
    return low.at;
  }

  /** The first cluster that begins in the bytes `[from, to)`. */
  async #clusterAfter(from: number, to: number, signal?: AbortSignalLike): Promise<Place | undefined> {
    const end = Math.min(to, from + SEARCH_BYTES);
    for (let at = from; at < end; at += SEARCH_STEP_BYTES) {
      // 32 bytes more, for a cluster that begins at the very end of the step.
      const bytes = await this.#cache.read(
        at,
        Math.min(at + SEARCH_STEP_BYTES + 32, this.#cache.size),
        signal,
      );
      const found = findCluster(bytes, Math.min(SEARCH_STEP_BYTES, end - at));
      if (found) return { at: at + found.at, seconds: found.time * this.#index.tickSeconds };
    }
    return undefined;
  }
}

/** The start of the last frame of a file in seconds, for files that state no duration; 0 if no cluster is found. */
export async function lastBlockSeconds(
  cache: BlockCache,
  index: MatroskaIndex,
  signal?: AbortSignalLike,
): Promise<number> {
  let latest = 0;
  const visit = ({ time }: WalkedBlock) => {
    latest = Math.max(latest, time);
  };
  await walkLastCluster(cache, index, visit, signal);
  return latest * index.tickSeconds;
}

/** Visits the blocks of the last cluster of a file; none if it is not found in the last {@link SEARCH_BYTES}. */
export async function walkLastCluster(
  cache: BlockCache,
  index: MatroskaIndex,
  visit: (block: WalkedBlock) => void,
  signal?: AbortSignalLike,
): Promise<void> {
  const lowest = Math.max(index.firstCluster, index.dataEnd - SEARCH_BYTES);
  for (let end = index.dataEnd; end > lowest; end -= SEARCH_STEP_BYTES) {
    const start = Math.max(lowest, end - SEARCH_STEP_BYTES);
    const bytes = await cache.read(start, Math.min(end + 32, cache.size), signal);
    let last: { at: number; time: number } | undefined;
    for (let found = findCluster(bytes, end - start); found; ) {
      last = found;
      const next = findCluster(bytes.subarray(found.at + 1), end - start - found.at - 1);
      found = next && { at: found.at + 1 + next.at, time: next.time };
    }
    if (!last) continue;
    const walk = { start: start + last.at, end: index.dataEnd };
    const visitAll = (block: WalkedBlock) => {
      visit(block);
      return true;
    };
    return walkBlocks(cache, walk, visitAll, signal);
  }
}

/** Finds the first cluster that begins before `limit`, recognised by its id, a size, and a timestamp as first or second child. */
function findCluster(bytes: Uint8Array, limit: number): { at: number; time: number } | undefined {
  for (let at = bytes.indexOf(0x1f); at >= 0 && at < limit; at = bytes.indexOf(0x1f, at + 1)) {
    const head = readEbmlHead(bytes, at);
    if (head?.id !== MATROSKA.cluster) continue;
    let child = readEbmlHead(bytes, head.start);
    // A CRC-32 element can precede the timestamp.
    if (child?.id === MATROSKA.crc && child.end !== undefined) child = readEbmlHead(bytes, child.end);
    if (child?.id !== CLUSTER.timestamp || child.end === undefined) continue;
    if (child.end - child.start > 8 || child.end > bytes.length) continue;
    return { at, time: ebmlUint(bytes, child.start, child.end) };
  }
  return undefined;
}
