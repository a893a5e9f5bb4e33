import type { AbortSignalLike, RandomAccess } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import type { Mp4Samples } from "../media/mp4-samples.ts";
import { reorderTicks } from "../media/timestamps.ts";
import type { SourceTrack } from "./media-tracks.ts";
import { OwnedMemory } from "./owned-memory.ts";
import {
  type PacketReader,
  SEGMENT_LIMIT_BYTES,
  SEGMENT_LIMIT_PACKETS,
  type SegmentBounds,
} from "./packet-reader.ts";
import type { TsMuxPacket } from "./ts-mux-input.ts";

/** Bytes between two samples that are cheaper read along than asked for separately. */
const GAP_BYTES = 64 * 1024;
/** One read asks for at most so much, so that no single array grows beyond use. */
const RUN_LIMIT_BYTES = 16 * 1024 * 1024;
/** A well interleaved segment is one run; one that is not shall not flood the source. */
const RUNS_AT_ONCE = 8;
/** Enough frames to see every pattern of reordering an encoder uses. */
const REORDER_FRAMES = 250;
/** Key times are looked up as they were told; so much covers the rounding of a division. */
const GRACE_SECONDS = 1e-6;

interface Sample {
  readonly table: Mp4Samples;
  readonly track: number;
  readonly index: number;
}

/**
 * Reads the packets of an MP4 file by its sample tables. What a segment needs is known before the first byte is read: it is
 * asked for at once, and it is all that is read.
 */
export class Mp4Reader implements PacketReader {
  readonly #source: RandomAccess;
  readonly #tables: ReadonlyMap<number, Mp4Samples>;

  constructor(source: RandomAccess, tables: readonly Mp4Samples[]) {
    this.#source = source;
    this.#tables = new Map(tables.map((table) => [table.trackId, table]));
  }

  async read(
    tracks: readonly SourceTrack[],
    bounds: SegmentBounds,
    memory: OwnedMemory,
    signal?: AbortSignalLike,
  ) {
    const samples: Sample[] = [];
    let bytes = 0;
    for (const [track, source] of tracks.entries()) {
      const table = this.#table(source);
      const [from, to] = source.kind === "video" ? keyRange(table, bounds) : timeRange(table, bounds);
      for (let index = from; index < to; index++) {
        samples.push({ table, track, index });
        bytes += table.sizes[index]!;
      }
    }
    if (bytes > SEGMENT_LIMIT_BYTES || samples.length > SEGMENT_LIMIT_PACKETS) {
      throw new SluiceError("broken_media", `a segment of ${bytes} bytes: the file has too few key frames`);
    }
    return this.#fetch(samples, memory, signal);
  }

  async first(track: SourceTrack, signal?: AbortSignalLike): Promise<TsMuxPacket> {
    const table = this.#table(track);
    if (table.count === 0) throw new SluiceError("broken_media", `the ${track.kind} track has no packets`);
    return (await this.#fetch([{ table, track: 0, index: 0 }], new OwnedMemory(), signal))[0]!;
  }

  async reorderSeconds(track: SourceTrack): Promise<number> {
    const table = this.#table(track);
    return reorderTicks([...table.shown.subarray(0, REORDER_FRAMES)]) / table.timescale;
  }

  close(): void {}

  #table(track: SourceTrack): Mp4Samples {
    const table = this.#tables.get(track.id);
    if (!table) throw new SluiceError("broken_media", `track ${track.id} has no sample table`);
    return table;
  }

  /** Reads samples in as few runs as are worth it, all at once; returns them in the order given. */
  async #fetch(
    samples: readonly Sample[],
    memory: OwnedMemory,
    signal?: AbortSignalLike,
  ): Promise<TsMuxPacket[]> {
    const byPlace = samples.map((_, i) => i);
    const startOf = (i: number) => samples[i]!.table.offsets[samples[i]!.index]!;
    const endOf = (i: number) => startOf(i) + samples[i]!.table.sizes[samples[i]!.index]!;
    byPlace.sort((a, b) => startOf(a) - startOf(b));
    const packets: TsMuxPacket[] = new Array(samples.length);
    const runs: Array<() => Promise<void>> = [];
    for (let from = 0; from < byPlace.length; ) {
      const start = startOf(byPlace[from]!);
      let [end, to] = [endOf(byPlace[from]!), from + 1];
      for (; to < byPlace.length; to++) {
        const next = byPlace[to]!;
        if (startOf(next) > end + GAP_BYTES || endOf(next) - start > RUN_LIMIT_BYTES) break;
        end = Math.max(end, endOf(next));
      }
      if (end > this.#source.size)
        throw new SluiceError("broken_media", "a sample beyond the end of the file");
      const members = byPlace.slice(from, to);
      runs.push(() => this.#run({ start, end }, members, samples, packets, memory, signal));
      from = to;
    }
    await allOf(runs, RUNS_AT_ONCE);
    return packets;
  }

  async #run(
    range: { start: number; end: number },
    members: readonly number[],
    samples: readonly Sample[],
    packets: TsMuxPacket[],
    memory: OwnedMemory,
    signal?: AbortSignalLike,
  ): Promise<void> {
    const isEmpty = range.end === range.start;
    const bytes = isEmpty
      ? new Uint8Array(0)
      : memory.own(await this.#source.read(range, signal ? { signal } : {}));
    for (const i of members) {
      const { table, track, index } = samples[i]!;
      const at = table.offsets[index]! - range.start;
      packets[i] = {
        track,
        ptsSeconds: secondsAt(table, index),
        durationSeconds: table.durations[index]! / table.timescale,
        isKey: isKey(table, index),
        data: bytes.subarray(at, at + table.sizes[index]!),
      };
    }
  }
}

/** When a sample is shown, in the time of the file. */
export function secondsAt(table: Mp4Samples, index: number): number {
  return (table.shown[index]! - table.editTicks) / table.timescale;
}

/** The times of all key frames, in decode order. */
export function keySeconds(table: Mp4Samples): number[] {
  if (table.keys) return Array.from(table.keys, (index) => secondsAt(table, index));
  return Array.from({ length: table.count }, (_, index) => secondsAt(table, index));
}

/** When the last sample of a track has been shown. */
export function endSeconds(table: Mp4Samples): number {
  let end = 0;
  // Frames are reordered over a few places only.
  for (let index = Math.max(0, table.count - 64); index < table.count; index++) {
    end = Math.max(end, secondsAt(table, index) + table.durations[index]! / table.timescale);
  }
  return end;
}

function isKey(table: Mp4Samples, index: number): boolean {
  if (!table.keys) return true;
  const place = firstAtLeast(table.keys.length, (i) => table.keys![i]! - index);
  return table.keys[place] === index;
}

/** Samples from the key frame of one cut to that of the next. */
function keyRange(table: Mp4Samples, bounds: SegmentBounds): [number, number] {
  const at = (seconds: number, otherwise: number) => {
    if (!Number.isFinite(seconds)) return otherwise;
    const keyCount = table.keys?.length ?? table.count;
    const sampleOf = (i: number) => table.keys?.[i] ?? i;
    const place = firstAtLeast(keyCount, (i) => secondsAt(table, sampleOf(i)) - seconds + GRACE_SECONDS);
    return place < keyCount ? sampleOf(place) : table.count;
  };
  return [at(bounds.startSeconds, 0), at(bounds.endSeconds, table.count)];
}

/** Samples that begin within a time. Audio is shown in the order it is decoded in. */
function timeRange(table: Mp4Samples, bounds: SegmentBounds): [number, number] {
  const at = (seconds: number) => firstAtLeast(table.count, (i) => secondsAt(table, i) - seconds);
  return [at(bounds.startSeconds), at(bounds.endSeconds)];
}

/** The first of `count` places whose difference is not below zero, by halving. */
export function firstAtLeast(count: number, difference: (place: number) => number): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (difference(middle) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Does all the work, so many pieces at a time; rejects with the first failure. */
async function allOf(work: readonly (() => Promise<void>)[], atOnce: number): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < work.length) await work[next++]!();
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, work.length) }, worker));
}
