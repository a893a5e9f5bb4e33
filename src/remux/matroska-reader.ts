import { BufferPool } from "../base/buffer-pool.ts";
import type { AbortSignalLike } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import type { MatroskaTrack } from "../media/matroska-head.ts";
import { reorderFrames, reorderTicks } from "../media/timestamps.ts";
import type { BlockCache } from "./block-cache.ts";
import { type ClusterFinder, walkLastCluster } from "./cluster-finder.ts";
import { type Walk, type WalkedBlock, walkBlocks } from "./cluster-walk.ts";
import { matroskaDemuxer, NEAR_AUDIO_SECONDS } from "./matroska-demuxer.ts";
import type { MatroskaIndex } from "./matroska-index.ts";
import { TrackPackets } from "./matroska-packets.ts";
import type { SourceTrack } from "./media-tracks.ts";
import {
  checkSegmentSize,
  type Demux,
  lastSeconds,
  type PacketReader,
  type Reordering,
  type SegmentBounds,
} from "./packet-reader.ts";
import type { TsMuxPacket } from "./ts-mux-input.ts";

/** Enough frames to measure any encoder's reordering. */
const REORDER_FRAMES = 250;
/** Fewer frames suffice beyond `REORDER_CHEAP_BYTES`, because measuring reads the bytes of the frames. */
const REORDER_FRAMES_AT_LEAST = 32;
const REORDER_CHEAP_BYTES = 256 * 1024;
const REORDER_BYTES = 1024 * 1024;
/** How far the second key frame is searched for: ten seconds of 10 Mbit/s. */
const KEY_DISTANCE_BYTES = 12 * 1024 * 1024;
/** How far after the first cluster the first packet of a track can be. */
const FIRST_PACKET_BYTES = 32 * 1024 * 1024;
/** Step size of reads beyond the cluster where the last segment ends. */
const STEP_BYTES = 64 * 1024;

/**
 * Finds the packets of a Matroska file in its clusters (RFC 9559 5.1.3). A segment is the blocks of all tracks between two key frames
 * in file order, except that audio stored after a border belongs to the segment of its time. So no packet is lost or duplicated, and
 * badly interleaved audio is in the segment of its picture.
 */
export class MatroskaReader implements PacketReader {
  readonly #cache: BlockCache;
  readonly #pool = new BufferPool();
  readonly #index: MatroskaIndex;
  readonly #finder: ClusterFinder;
  /** Number of the track whose key frames decide the segment boundaries. */
  readonly #leading: number;
  /** The tracks with blocks at the end of the file; undefined if they have not been read. */
  #lastingTracks: ReadonlySet<number> | undefined;

  constructor(cache: BlockCache, index: MatroskaIndex, finder: ClusterFinder, leading: number) {
    this.#cache = cache;
    this.#index = index;
    this.#finder = finder;
    this.#leading = leading;
  }

  async demux(
    tracks: readonly SourceTrack[],
    segments: readonly SegmentBounds[],
    signal?: AbortSignalLike,
  ): Promise<Demux> {
    const { dataEnd, firstCluster, tickSeconds } = this.#index;
    const [{ startSeconds }, { endSeconds }] = [segments[0]!, segments.at(-1)!];
    const isFirst = startSeconds === Number.NEGATIVE_INFINITY;
    const isLast = endSeconds === Number.POSITIVE_INFINITY;
    const start = isFirst ? firstCluster : await this.#finder.before(startSeconds, signal);
    const end = isLast ? dataEnd : Math.max(start, await this.#finder.before(endSeconds, signal));
    if (segments.length === 1) checkSegmentSize(end - start, 0);
    return {
      pool: this.#pool,
      ranges: function* () {
        if (end > start) yield { start, end, until: end };
        // The key frame that ends the last segment, and its last audio, are a little after that cluster begins.
        for (let at = end; at < dataEnd; at += STEP_BYTES)
          yield { start: at, end: Math.min(at + STEP_BYTES, dataEnd), until: at };
      },
      demuxer: matroskaDemuxer({
        begin: () => tracks.map((track) => new TrackPackets(track, this.#trackOf(track), tickSeconds)),
        leading: this.#leading,
        segments,
        tickSeconds,
        lasting: () => this.#lasting(),
        pool: this.#pool,
      }),
    };
  }

  async tail(
    track: SourceTrack,
    { startSeconds, endSeconds }: SegmentBounds,
    seconds: number,
    signal?: AbortSignalLike,
  ): Promise<TsMuxPacket[]> {
    const packets = new TrackPackets(track, this.#trackOf(track), this.#index.tickSeconds);
    const from = Math.max(startSeconds, endSeconds - seconds);
    const start = await this.#finder.before(from, signal);
    // The previous segment is often read already, so it is read in small steps, which are cached.
    const walk = { start, end: this.#index.dataEnd };
    const visit = async (block: WalkedBlock) => {
      const { head, time } = block;
      if (head.track !== packets.track.number) return !this.#isAtLeast(time, endSeconds + NEAR_AUDIO_SECONDS);
      if (this.#isAtLeast(time, endSeconds)) return false;
      const body = this.#isAtLeast(time, from) ? await block.body() : undefined;
      if (body) packets.add(time, body);
      return true;
    };
    await walkBlocks(this.#cache, walk, visit, signal);
    return lastSeconds(packets.take(0), seconds);
  }

  /** Finds the tracks with blocks at the end of the file. */
  async #lasting(): Promise<ReadonlySet<number>> {
    if (this.#lastingTracks) return this.#lastingTracks;
    const tracks = new Set<number>();
    await walkLastCluster(this.#cache, this.#index, ({ head }) => tracks.add(head.track));
    this.#lastingTracks = tracks;
    return tracks;
  }

  async first(track: SourceTrack, signal?: AbortSignalLike): Promise<TsMuxPacket> {
    const packets = new TrackPackets(track, this.#trackOf(track), this.#index.tickSeconds);
    const walk = walkFromStart(this.#index, FIRST_PACKET_BYTES);
    const visit = async (block: WalkedBlock) => {
      if (block.head.track !== packets.track.number) return true;
      const body = await block.body();
      if (body) packets.add(block.time, body);
      return false;
    };
    await walkBlocks(this.#cache, walk, visit, signal);
    const [first] = packets.take(0);
    if (!first)
      throw new SluiceError(
        "broken_media",
        `the ${track.kind} track has no packets in the first ${FIRST_PACKET_BYTES} bytes of media`,
      );
    return first;
  }

  async reordering(track: SourceTrack, signal?: AbortSignalLike): Promise<Reordering> {
    const { number } = this.#trackOf(track);
    const { firstCluster, tickSeconds } = this.#index;
    const walk = walkFromStart(this.#index, REORDER_BYTES);
    const times: number[] = [];
    const visit = (block: WalkedBlock) => {
      if (block.head.track === number) times.push(block.time);
      const isExpensive = block.at - firstCluster > REORDER_CHEAP_BYTES;
      return times.length < (isExpensive ? REORDER_FRAMES_AT_LEAST : REORDER_FRAMES);
    };
    await walkBlocks(this.#cache, walk, visit, signal);
    return { seconds: reorderTicks(times) * tickSeconds, frames: reorderFrames(times) };
  }

  /** Compares with a tolerance of half a tick, because the bounds were computed from ticks. */
  #isAtLeast(time: number, seconds: number): boolean {
    return time >= seconds / this.#index.tickSeconds - 0.5;
  }

  #trackOf(track: SourceTrack): MatroskaTrack {
    const found = this.#index.tracks.find(({ number }) => number === track.id);
    if (!found) throw new SluiceError("broken_media", `the Matroska file has no track ${track.id}`);
    return found;
  }
}

/**
 * The time between the first two key frames of a track, in seconds; 0 if there is no second one near the start. Reads block heads in
 * the part of the file that the first segment needs anyway.
 */
export async function keyDistanceSeconds(
  cache: BlockCache,
  index: MatroskaIndex,
  trackNumber: number,
  signal?: AbortSignalLike,
): Promise<number> {
  const walk = walkFromStart(index, KEY_DISTANCE_BYTES);
  const keys: number[] = [];
  const visit = ({ head, time }: WalkedBlock) => {
    if (head.track === trackNumber && head.isKey) keys.push(time);
    return keys.length < 2;
  };
  await walkBlocks(cache, walk, visit, signal);
  return keys.length < 2 ? 0 : Math.max(0, keys[1]! - keys[0]!) * index.tickSeconds;
}

/** A walk over the first `bytes` of the clusters, in small reads. */
function walkFromStart({ firstCluster, dataEnd }: MatroskaIndex, bytes: number): Walk {
  return { start: firstCluster, end: Math.min(dataEnd, firstCluster + bytes) };
}
