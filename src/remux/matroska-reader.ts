import type { AbortSignalLike } from "../base/byte-source.ts";
import { concatBytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { MatroskaBlock } from "../media/matroska-blocks.ts";
import type { MatroskaTrack } from "../media/matroska-head.ts";
import { reorderTicks } from "../media/timestamps.ts";
import type { BlockCache } from "./block-cache.ts";
import type { ClusterFinder } from "./cluster-finder.ts";
import { type Walk, type WalkedBlock, walkBlocks } from "./cluster-walk.ts";
import type { MatroskaIndex } from "./matroska-index.ts";
import type { SourceTrack } from "./media-tracks.ts";
import type { OwnedMemory } from "./owned-memory.ts";
import {
  type PacketReader,
  SEGMENT_LIMIT_BYTES,
  SEGMENT_LIMIT_PACKETS,
  type SegmentBounds,
} from "./packet-reader.ts";
import type { TsMuxPacket } from "./ts-mux-input.ts";

/** Enough frames to see every pattern of reordering an encoder uses. */
const REORDER_FRAMES = 250;
/** Fewer do where they take more bytes than that: they have to be read for it. */
const REORDER_FRAMES_AT_LEAST = 32;
const REORDER_CHEAP_BYTES = 256 * 1024;
const REORDER_BYTES = 1024 * 1024;
/** How far the second key frame is looked for: ten seconds of 10 Mbit/s. */
const KEY_DISTANCE_BYTES = 12 * 1024 * 1024;
/** How far the first packet of a track may lie behind the first cluster. */
const FIRST_PACKET_BYTES = 32 * 1024 * 1024;
/** Samples of one frame, where the container does not tell how long frames last. */
const FRAME_SAMPLES: Readonly<Record<string, number>> = {
  aac: 1024,
  mp3: 1152,
  mp2: 1152,
  ac3: 1536,
  eac3: 1536,
};

/**
 * Reads the packets of a Matroska file from its clusters. A segment is what lies in the file between two key frames, of
 * all tracks: so none is lost or doubled, and nothing else is read.
 */
export class MatroskaReader implements PacketReader {
  readonly #cache: BlockCache;
  readonly #index: MatroskaIndex;
  readonly #finder: ClusterFinder;
  /** The track whose key frames part the segments. */
  readonly #leading: number;

  constructor(cache: BlockCache, index: MatroskaIndex, finder: ClusterFinder, leading: number) {
    this.#cache = cache;
    this.#index = index;
    this.#finder = finder;
    this.#leading = leading;
  }

  async read(
    tracks: readonly SourceTrack[],
    bounds: SegmentBounds,
    memory: OwnedMemory,
    signal?: AbortSignalLike,
  ) {
    const gathered = tracks.map(
      (track) => new TrackPackets(track, this.#trackOf(track), this.#index.tickSeconds),
    );
    const byNumber = new Map(gathered.map((one) => [one.track.number, one]));
    let [isInside, bytes, count] = [bounds.startSeconds === Number.NEGATIVE_INFINITY, 0, 0];
    const visit = async (block: WalkedBlock) => {
      const isKey = block.head.track === this.#leading && block.head.isKey;
      if (isKey && this.#isAtLeast(block.time, bounds.endSeconds)) return false;
      isInside ||= isKey && this.#isAtLeast(block.time, bounds.startSeconds);
      const packets = isInside ? byNumber.get(block.head.track) : undefined;
      if (!packets) return true;
      const body = await block.body();
      if (body) packets.add(block.time, body);
      for (const frame of body?.frames ?? []) bytes += frame.length;
      if (bytes > SEGMENT_LIMIT_BYTES || ++count > SEGMENT_LIMIT_PACKETS) {
        throw new SluiceError("broken_media", `a segment of more than ${bytes} bytes: too few key frames`);
      }
      return true;
    };
    await walkBlocks(this.#cache, await this.#walk(bounds, signal), visit, signal, memory);
    return gathered.flatMap((one, track) => one.finish(track));
  }

  async first(track: SourceTrack, signal?: AbortSignalLike): Promise<TsMuxPacket> {
    const packets = new TrackPackets(track, this.#trackOf(track), this.#index.tickSeconds);
    const { firstCluster, dataEnd } = this.#index;
    const walk = {
      start: firstCluster,
      bulkEnd: firstCluster,
      end: Math.min(dataEnd, firstCluster + FIRST_PACKET_BYTES),
    };
    const visit = async (block: WalkedBlock) => {
      if (block.head.track !== packets.track.number) return true;
      const body = await block.body();
      if (body) packets.add(block.time, body);
      return false;
    };
    await walkBlocks(this.#cache, walk, visit, signal);
    const [first] = packets.finish(0);
    if (!first) throw new SluiceError("broken_media", `the ${track.kind} track has no packets at its start`);
    return first;
  }

  async reorderSeconds(track: SourceTrack, signal?: AbortSignalLike): Promise<number> {
    const { number } = this.#trackOf(track);
    const { firstCluster, dataEnd, tickSeconds } = this.#index;
    const walk = {
      start: firstCluster,
      bulkEnd: firstCluster,
      end: Math.min(dataEnd, firstCluster + REORDER_BYTES),
    };
    const times: number[] = [];
    const visit = (block: WalkedBlock) => {
      if (block.head.track === number) times.push(block.time);
      const isDear = block.at - firstCluster > REORDER_CHEAP_BYTES;
      return times.length < (isDear ? REORDER_FRAMES_AT_LEAST : REORDER_FRAMES);
    };
    await walkBlocks(this.#cache, walk, visit, signal);
    return reorderTicks(times) * tickSeconds;
  }

  close(): void {}

  async #walk({ startSeconds, endSeconds }: SegmentBounds, signal?: AbortSignalLike): Promise<Walk> {
    const { firstCluster, dataEnd } = this.#index;
    const isFirst = startSeconds === Number.NEGATIVE_INFINITY;
    const start = isFirst ? firstCluster : await this.#finder.before(startSeconds, signal);
    const bulkEnd =
      endSeconds === Number.POSITIVE_INFINITY ? dataEnd : await this.#finder.before(endSeconds, signal);
    if (bulkEnd - start > SEGMENT_LIMIT_BYTES)
      throw new SluiceError("broken_media", "a segment of too many bytes");
    return { start, bulkEnd: Math.max(start, bulkEnd), end: dataEnd };
  }

  /** Half a tick of grace: the bounds were ticks once. */
  #isAtLeast(time: number, seconds: number): boolean {
    return time >= seconds / this.#index.tickSeconds - 0.5;
  }

  #trackOf(track: SourceTrack): MatroskaTrack {
    const found = this.#index.tracks.find(({ number }) => number === track.id);
    if (!found) throw new SluiceError("broken_media", `there is no track ${track.id}`);
    return found;
  }
}

/**
 * How far the second key frame of a track lies behind the first, in seconds; 0 where none is found near the start. It reads the heads
 * of blocks, of the part of the file that a first segment needs anyway.
 */
export async function keyDistanceSeconds(
  cache: BlockCache,
  index: MatroskaIndex,
  trackNumber: number,
  signal?: AbortSignalLike,
): Promise<number> {
  const { firstCluster, dataEnd, tickSeconds } = index;
  const walk = {
    start: firstCluster,
    bulkEnd: firstCluster,
    end: Math.min(dataEnd, firstCluster + KEY_DISTANCE_BYTES),
  };
  const keys: number[] = [];
  const visit = ({ head, time }: WalkedBlock) => {
    if (head.track === trackNumber && head.isKey) keys.push(time);
    return keys.length < 2;
  };
  await walkBlocks(cache, walk, visit, signal);
  return keys.length < 2 ? 0 : Math.max(0, keys[1]! - keys[0]!) * tickSeconds;
}

/** Gathers the packets of one track, and gives each its duration. */
class TrackPackets {
  readonly track: MatroskaTrack;
  readonly #tickSeconds: number;
  readonly #isVideo: boolean;
  readonly #frameSeconds: number;
  readonly #packets: Array<{ pts: number; duration: number; isKey: boolean; data: Uint8Array }> = [];

  constructor(source: SourceTrack, track: MatroskaTrack, tickSeconds: number) {
    this.track = track;
    this.#tickSeconds = tickSeconds;
    this.#isVideo = source.kind === "video";
    const samples = FRAME_SAMPLES[source.described.codec];
    this.#frameSeconds =
      track.frameSeconds ?? (samples && source.sampleRate ? samples / source.sampleRate : 0);
  }

  add(time: number, block: MatroskaBlock): void {
    const told =
      block.duration === undefined ? 0 : (block.duration * this.#tickSeconds) / block.frames.length;
    const duration = told || this.#frameSeconds;
    const first = time * this.#tickSeconds - this.track.delaySeconds;
    const { strippedBytes } = this.track;
    for (const [i, frame] of block.frames.entries()) {
      const data = strippedBytes.length > 0 ? concatBytes([strippedBytes, frame]) : frame;
      this.#packets.push({ pts: first + i * duration, duration, isKey: !this.#isVideo || block.isKey, data });
    }
  }

  /** What was gathered; a frame whose length is not told lasts until the next one. */
  finish(track: number): TsMuxPacket[] {
    const sorted = Float64Array.from(this.#packets, ({ pts }) => pts).sort();
    const usual = sorted.length > 1 ? (sorted.at(-1)! - sorted[0]!) / (sorted.length - 1) : 0;
    return this.#packets.map(({ pts, duration, isKey, data }) => ({
      track,
      ptsSeconds: pts,
      durationSeconds: duration || usual,
      isKey,
      data,
    }));
  }
}
