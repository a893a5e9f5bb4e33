import { onAbort } from "../async/abort.ts";
import type { BufferPool } from "../base/buffer-pool.ts";
import type { AbortSignalLike, RandomAccess } from "../base/byte-source.ts";
import { OwnedMemory } from "../base/owned-memory.ts";
import type { ByteRange } from "../base/range.ts";
import type { Demux, PlannedFrame, PlannedFrames } from "./packet-reader.ts";
import { type PlannedRange, pieceStream, type ReadingOrder, streamChunks } from "./piece-stream.ts";
import { Remuxer } from "./remuxer.ts";
import type { PacketBatch, TsMuxPacket } from "./ts-mux-input.ts";

/** A frame whose place in the file is known before its bytes are read. */
export interface PlannedSample extends Omit<PlannedFrame, "data"> {
  /** Byte position in the file. */
  readonly at: number;
  data: Uint8Array;
  memory?: OwnedMemory;
}

/** Frames that are read together. */
export interface SampleSlice extends PlannedFrames {
  readonly samples: readonly PlannedSample[];
  /** Byte position until which later slices are read. */
  readonly until: number;
}

/** All tracks reach about the same time in steps of this, so that they are interleaved closely whatever their order in the file is. */
const STEP_SECONDS = 0.05;
/** A slice has at least so many bytes, because each batch has a fixed cost. With a step more it is still one chunk of the file. */
const SLICE_BYTES = 192 * 1024;
/** A slice with at least so many samples is complete, because hostile samples have a byte each. */
const SLICE_SAMPLES = 4096;
/** Samples with a smaller gap between them are read together. */
const GAP_BYTES = 64 * 1024;

/**
 * Divides the frames of a segment into slices of all tracks; each element of `tracks` is in decode order.
 * @param isSegmentEnd whether these are the last frames of a segment.
 * @param until byte position until which this segment, and later ones, are read.
 */
export function* sliceSamples(
  tracks: readonly (readonly PlannedSample[])[],
  isSegmentEnd: boolean,
  until: number,
): Generator<SampleSlice> {
  const next = tracks.map(() => 0);
  let samples: PlannedSample[] = [];
  let bytes = 0;
  for (;;) {
    let startSeconds = Number.POSITIVE_INFINITY;
    for (let i = 0; i < tracks.length; i++) {
      const sample = tracks[i]![next[i]!];
      if (sample && sample.ptsSeconds < startSeconds) startSeconds = sample.ptsSeconds;
    }
    if (startSeconds === Number.POSITIVE_INFINITY) break;
    const endSeconds = startSeconds + STEP_SECONDS;
    for (let i = 0; i < tracks.length; i++) {
      const track = tracks[i]!;
      let at = next[i]!;
      for (let sample = track[at]; sample && sample.ptsSeconds <= endSeconds; sample = track[++at]) {
        samples.push(sample);
        bytes += sample.size;
      }
      next[i] = at;
    }
    if (bytes < SLICE_BYTES && samples.length < SLICE_SAMPLES) continue;
    const isLast = tracks.every((track, i) => next[i] === track.length);
    yield { samples, endsSegment: isSegmentEnd && isLast, until };
    if (isLast) return;
    samples = [];
    bytes = 0;
  }
  yield { samples, endsSegment: isSegmentEnd, until };
}

/** A slice whose bytes are arriving. */
interface ArrivingSlice extends SampleSlice {
  /** The samples by their position in the file. */
  readonly ordered: readonly PlannedSample[];
  /** The ranges that have not arrived completely. */
  readonly ranges: ByteRange[];
  /** Index of the first sample in `ordered` that is not complete. */
  next: number;
  readonly memory: OwnedMemory;
}

/**
 * Reads frames whose places are known from an index: each slice by the ranges of its frames, neighbours in one range. The slices are
 * planned while their bytes are read.
 */
export function demuxSamples(
  slices: (signal: AbortSignal) => AsyncIterable<SampleSlice> | Iterable<SampleSlice>,
  pool: BufferPool,
): Demux {
  /** Slices whose ranges were passed to the reader: as many as it reads ahead. */
  const arriving: ArrivingSlice[] = [];
  const plan = (slice: SampleSlice): PlannedRange[] => {
    const ordered = slice.samples.filter(({ isSkipped }) => !isSkipped).sort((a, b) => a.at - b.at);
    const needed = rangesOf(ordered);
    const memory = new OwnedMemory(pool);
    memory.use(ordered.length);
    for (const sample of ordered) sample.memory = memory;
    arriving.push({ ...slice, ordered, ranges: [...needed], next: 0, memory });
    return needed.map((range) => ({ ...range, until: slice.until }));
  };
  const ranges: ReadingOrder = (signal) => {
    const planned = slices(signal);
    return Symbol.asyncIterator in planned ? readLater(planned, plan) : readNow(planned, plan);
  };
  /** The slices that are complete now. */
  const complete = (): PacketBatch[] => {
    const batches: PacketBatch[] = [];
    while (arriving[0]?.ranges.length === 0) {
      const { samples, endsSegment } = arriving.shift()!;
      batches.push({ packets: samples, endsSegment });
    }
    return batches;
  };
  const demuxer = new Remuxer<Uint8Array<ArrayBuffer>, PacketBatch>({
    transform(bytes) {
      // A chunk lies within one range of one slice; slices without bytes are complete.
      const slice = arriving.find((one) => one.ranges.length > 0)!;
      const [range] = slice.ranges;
      fill(slice, slice.memory.own(bytes), range!.start);
      if (range!.start + bytes.length === range!.end) slice.ranges.shift();
      else slice.ranges[0] = { start: range!.start + bytes.length, end: range!.end };
      return complete();
    },
    flush: complete,
  });
  return { ranges, demuxer, pool };
}

/** A plan that needs no reads is not asynchronous, because each wait costs. */
function* readNow(
  slices: Iterable<SampleSlice>,
  plan: (slice: SampleSlice) => PlannedRange[],
): Generator<PlannedRange> {
  for (const slice of slices) yield* plan(slice);
}

async function* readLater(
  slices: AsyncIterable<SampleSlice>,
  plan: (slice: SampleSlice) => PlannedRange[],
): AsyncGenerator<PlannedRange> {
  for await (const slice of slices) yield* plan(slice);
}

/** The ranges of samples that are sorted by position. */
function rangesOf(ordered: readonly PlannedSample[]): ByteRange[] {
  const ranges: { start: number; end: number }[] = [];
  for (const { at, size } of ordered) {
    const last = ranges.at(-1);
    if (size === 0) continue;
    if (last && at <= last.end + GAP_BYTES) last.end = Math.max(last.end, at + size);
    else ranges.push({ start: at, end: at + size });
  }
  return ranges;
}

/** Passes the bytes from position `at` of the file to the samples that contain them. */
function fill(slice: ArrivingSlice, bytes: Uint8Array, at: number): void {
  const end = at + bytes.length;
  const { ordered } = slice;
  for (let i = slice.next; i < ordered.length && ordered[i]!.at < end; i++) {
    const sample = ordered[i]!;
    const sampleEnd = sample.at + sample.size;
    if (sample.at >= at && sampleEnd <= end) {
      sample.data = bytes.subarray(sample.at - at, sampleEnd - at);
    } else if (sampleEnd > at) {
      if (sample.data.length !== sample.size) sample.data = slice.memory.take(sample.size);
      const part = bytes.subarray(Math.max(0, sample.at - at), sampleEnd - at);
      sample.data.set(part, Math.max(0, at - sample.at));
    }
  }
  while (slice.next < ordered.length && ordered[slice.next]!.at + ordered[slice.next]!.size <= end)
    slice.next++;
}

/** Reads all packets of a demultiplexer. */
export async function demuxedPackets(
  source: RandomAccess,
  { ranges, demuxer, pool }: Demux,
  signal?: AbortSignalLike,
): Promise<TsMuxPacket[]> {
  const closed = new AbortController();
  const release = onAbort(signal, () => closed.abort(signal?.reason));
  try {
    const pieces = pieceStream({ source, ranges, closed: closed.signal, pool });
    const batches = await streamChunks(pieces.pipeThrough(demuxer));
    return batches.flatMap(({ packets }) => packets);
  } finally {
    release();
  }
}
