import { BufferPool } from "../base/buffer-pool.ts";
import type { AbortSignalLike, RandomAccess } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import type { Mp4Samples } from "../media/mp4-samples.ts";
import { reorderFrames, reorderTicks } from "../media/timestamps.ts";
import type { SourceTrack } from "./media-tracks.ts";
import {
  checkSegmentSize,
  type Demux,
  type PacketReader,
  type Reordering,
  type SegmentBounds,
} from "./packet-reader.ts";
import {
  demuxedPackets,
  demuxSamples,
  type PlannedSample,
  type SampleSlice,
  sliceSamples,
} from "./sample-demuxer.ts";
import type { TsMuxPacket } from "./ts-mux-input.ts";

/** Enough frames to measure any encoder's reordering. */
const REORDER_FRAMES = 250;
/** Tolerance for the rounding of divisions, because cuts are compared in seconds. */
const GRACE_SECONDS = 1e-6;
const NO_BYTES = new Uint8Array(0);

/**
 * Finds the packets of an MP4 file by its sample tables (ISO 14496-12 8.6, 8.7). The tables give the byte ranges of a segment, so
 * exactly these are read.
 */
export class Mp4Reader implements PacketReader {
  readonly #source: RandomAccess;
  readonly #pool = new BufferPool();
  readonly #tables: ReadonlyMap<number, Mp4Samples>;

  constructor(source: RandomAccess, tables: readonly Mp4Samples[]) {
    this.#source = source;
    this.#tables = new Map(tables.map((table) => [table.trackId, table]));
  }

  async demux(
    tracks: readonly SourceTrack[],
    segments: readonly SegmentBounds[],
    _signal?: AbortSignalLike,
    mark?: (frames: readonly SampleSlice[]) => void,
  ): Promise<Demux> {
    return demuxSamples(() => this.#slices(tracks, segments, mark), this.#pool);
  }

  *#slices(
    tracks: readonly SourceTrack[],
    segments: readonly SegmentBounds[],
    mark: ((frames: readonly SampleSlice[]) => void) | undefined,
  ): Generator<SampleSlice> {
    if (mark) {
      const first = [...this.plan(tracks, segments.slice(0, 1))];
      mark(first);
      yield* first;
    }
    yield* this.plan(tracks, mark ? segments.slice(1) : segments);
  }

  async tail(
    track: SourceTrack,
    { startSeconds, endSeconds }: SegmentBounds,
    seconds: number,
    signal?: AbortSignalLike,
  ): Promise<TsMuxPacket[]> {
    const bounds = { startSeconds: Math.max(startSeconds, endSeconds - seconds), endSeconds };
    return demuxedPackets(this.#source, await this.demux([track], [bounds]), signal);
  }

  async first(track: SourceTrack, signal?: AbortSignalLike): Promise<TsMuxPacket> {
    const table = this.#table(track);
    if (table.count === 0) throw new SluiceError("broken_media", `the ${track.kind} track has no packets`);
    const sample = this.#sample(table, 0, 0);
    const range = { start: sample.at, end: sample.at + sample.size };
    return { ...sample, data: await this.#source.read(range, signal ? { signal } : {}) };
  }

  async reordering(track: SourceTrack): Promise<Reordering> {
    const table = this.#table(track);
    const pts = [...table.pts.subarray(0, REORDER_FRAMES)];
    return { seconds: reorderTicks(pts) / table.timescale, frames: reorderFrames(pts) };
  }

  *plan(tracks: readonly SourceTrack[], segments: readonly SegmentBounds[]): Generator<SampleSlice> {
    for (const bounds of segments) {
      let [bytes, packets, end] = [0, 0, 0];
      const samples = tracks.map((source, track) => {
        const table = this.#table(source);
        const [from, to] = source.kind === "video" ? keyRange(table, bounds) : timeRange(table, bounds);
        checkSegmentSize(bytes, packets + Math.max(0, to - from));
        const own: PlannedSample[] = [];
        for (let index = from; index < to; index++) {
          own.push(this.#sample(table, track, index));
          bytes += table.sizes[index]!;
          end = Math.max(end, table.offsets[index]! + table.sizes[index]!);
        }
        packets += own.length;
        return own;
      });
      checkSegmentSize(bytes, packets);
      yield* sliceSamples(samples, true, bounds === segments.at(-1) ? end : this.#source.size);
    }
  }

  #table(track: SourceTrack): Mp4Samples {
    const table = this.#tables.get(track.id);
    if (!table)
      throw new SluiceError("broken_media", `the MP4 file has no sample table for track ${track.id}`);
    return table;
  }

  #sample(table: Mp4Samples, track: number, index: number): PlannedSample {
    const [at, size] = [table.offsets[index]!, table.sizes[index]!];
    if (at + size > this.#source.size)
      throw new SluiceError("broken_media", "a sample is beyond the end of the file");
    return {
      track,
      ptsSeconds: secondsAt(table, index),
      durationSeconds: table.durations[index]! / table.timescale,
      isKey: isKey(table, index),
      at,
      size,
      data: NO_BYTES,
    };
  }
}

/** The presentation time of a sample, in seconds of the file's timeline. */
export function secondsAt(table: Mp4Samples, index: number): number {
  return (table.pts[index]! - table.editTicks) / table.timescale;
}

/** The times of all key frames in seconds, in decode order. */
export function keySeconds(table: Mp4Samples): number[] {
  if (table.keys) return Array.from(table.keys, (index) => secondsAt(table, index));
  return Array.from({ length: table.count }, (_, index) => secondsAt(table, index));
}

/** The presentation end of the last sample of a track, in seconds. */
export function endSeconds(table: Mp4Samples): number {
  let end = 0;
  // Reordering affects only neighbouring frames.
  for (let index = Math.max(0, table.count - 64); index < table.count; index++) {
    end = Math.max(end, secondsAt(table, index) + table.durations[index]! / table.timescale);
  }
  return end;
}

function isKey(table: Mp4Samples, index: number): boolean {
  if (!table.keys) return true;
  // Without a call per step, because every sample is looked up.
  const { keys } = table;
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (keys[middle]! < index) low = middle + 1;
    else high = middle;
  }
  return keys[low] === index;
}

/** The range of samples from the key frame of one cut to that of the next. */
function keyRange(table: Mp4Samples, bounds: SegmentBounds): [number, number] {
  const at = (seconds: number, otherwise: number) => {
    if (!Number.isFinite(seconds)) return otherwise;
    const keyCount = table.keys?.length ?? table.count;
    const sampleOf = (i: number) => table.keys?.[i] ?? i;
    const found = firstAtLeast(keyCount, (i) => secondsAt(table, sampleOf(i)) - seconds + GRACE_SECONDS);
    return found < keyCount ? sampleOf(found) : table.count;
  };
  return [at(bounds.startSeconds, 0), at(bounds.endSeconds, table.count)];
}

/** The range of samples that begin within the bounds. Presentation order equals decode order for audio. */
function timeRange(table: Mp4Samples, bounds: SegmentBounds): [number, number] {
  const at = (seconds: number) => firstAtLeast(table.count, (i) => secondsAt(table, i) - seconds);
  return [at(bounds.startSeconds), at(bounds.endSeconds)];
}

/** Binary search: the first index in `[0, count)` with `difference(index) >= 0`, else `count`. */
export function firstAtLeast(count: number, difference: (index: number) => number): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (difference(middle) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
