import type { BufferPool } from "../base/buffer-pool.ts";
import { DecodeError } from "../base/errors.ts";
import { OwnedMemory } from "../base/owned-memory.ts";
import { EBML_HEAD_BYTES, ebmlUint, readEbmlHead } from "../media/ebml.ts";
import {
  CLUSTER,
  type MatroskaBlock,
  parseBlockGroup,
  parseSimpleBlock,
  readBlockHead,
} from "../media/matroska-blocks.ts";
import { MATROSKA } from "../media/matroska-head.ts";
import type { TrackPackets } from "./matroska-packets.ts";
import { checkSegmentSize, type SegmentBounds } from "./packet-reader.ts";
import { Remuxer } from "./remuxer.ts";
import type { PacketBatch } from "./ts-mux-input.ts";

/** Frame size limit; even 8K video with a very high bit rate stays below it. */
export const ELEMENT_LIMIT_BYTES = 64 * 1024 * 1024;
/** How far after the end of a segment its last audio is searched: well interleaved files store it within fractions of a second. */
export const NEAR_AUDIO_SECONDS = 1;
/** The same if audio is missing before the end: ffmpeg stores the audio 10 s late or more if its encoder lags behind. */
const LATE_AUDIO_SECONDS = 30;
const LATE_AUDIO_BYTES = 64 * 1024 * 1024;

/** What {@link matroskaDemuxer} looks for. */
interface MatroskaPlan {
  /** Begins a segment: one collector for each track, in the order of `PacketBatch` tracks. */
  begin(): readonly TrackPackets[];
  /** Number of the track whose key frames decide the segment boundaries. */
  readonly leading: number;
  /** Consecutive segments. */
  readonly segments: readonly SegmentBounds[];
  readonly tickSeconds: number;
  /** Finds the tracks with blocks at the end of the file: they have not ended if they have no block yet. */
  lasting(): Promise<ReadonlySet<number>>;
  /** Its input is from this pool. */
  readonly pool: BufferPool;
}

/**
 * Finds the frames of consecutive segments in the bytes of clusters (RFC 9559 5.1.3), which begin at a cluster. Sizes of clusters are
 * ignored, so clusters of unknown size need no special case. It ends when the audio of the last segment is complete.
 */
export function matroskaDemuxer(plan: MatroskaPlan): Remuxer<Uint8Array<ArrayBuffer>, PacketBatch> {
  const parser = new ClusterParser(plan);
  return new Remuxer({
    transform: (bytes) => parser.push(bytes),
    flush: () => parser.end(),
    isDone: () => parser.isDone,
  });
}

/** A segment whose frames are collected. Times in ticks. */
interface Collecting {
  from: number;
  /** Time of the key frame that ends it; infinite until that is found. */
  to: number;
  /** The leading time and the position after which late audio is not waited for; the time is chosen when the segment ends. */
  lastTime: number | undefined;
  lastByte: number;
  readonly tracks: readonly TrackPackets[];
  bytes: number;
  packets: number;
}

class ClusterParser {
  /** True after the last segment, and after invalid data. */
  isDone = false;
  readonly #plan: MatroskaPlan;
  /** What is parsed now: a part of the input, or the element that crosses the border of two inputs. */
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  #memory: OwnedMemory;
  /** The parts of an element that continues in the next input, each in its own memory, and how many bytes it needs. */
  readonly #rest: { readonly bytes: Uint8Array<ArrayBuffer>; readonly memory: OwnedMemory }[] = [];
  #restBytes = 0;
  #neededBytes = 0;
  /** Bytes of an unused element that continues in the next input. */
  #skipBytes = 0;
  /** Position of `#bytes` in the input. */
  #position = 0;
  #clusterTime = 0;
  /** Index of the planned segment that the leading track is in. */
  #index = 0;
  #isInside: boolean;
  /** The segments that are not complete: one, and those after it while its audio is late. */
  readonly #open: Collecting[] = [];
  #leadingTime = 0;
  /** The latest time of each other track. */
  readonly #seen = new Map<number, number>();
  #lasting: ReadonlySet<number> | undefined;
  #batches: PacketBatch[] = [];

  constructor(plan: MatroskaPlan) {
    this.#plan = plan;
    this.#memory = new OwnedMemory(plan.pool);
    this.#isInside = plan.segments[0]!.startSeconds === Number.NEGATIVE_INFINITY;
    this.#begin(Number.NEGATIVE_INFINITY);
  }

  /** Takes the next bytes of the file. Rejects with `DecodeError` on an oversized element. */
  async push(input: Uint8Array<ArrayBuffer>): Promise<PacketBatch[]> {
    this.#memory = new OwnedMemory(this.#plan.pool);
    const memory = this.#memory;
    memory.own(input);
    // The parser uses the input too, so that the frames in it cannot return it first.
    memory.use(1);
    let at = Math.min(this.#skipBytes, input.length);
    this.#skipBytes -= at;
    this.#position += at;
    while (at < input.length && !this.isDone) {
      if (this.#restBytes === 0) {
        await this.#parse(input.subarray(at));
        break;
      }
      // Of the input, only the bytes of the element that crosses the border are copied.
      const missing = input.subarray(at, at + this.#neededBytes - this.#restBytes);
      at += missing.length;
      if (this.#restBytes + missing.length < this.#neededBytes) {
        this.#keep(missing);
        break;
      }
      await this.#parse(this.#joined(missing));
      const skipped = Math.min(this.#skipBytes, input.length - at);
      this.#skipBytes -= skipped;
      this.#position += skipped;
      at += skipped;
    }
    memory.release();
    const [first] = this.#open;
    if (first) this.#batch(first, false);
    return this.#batches.splice(0);
  }

  /** Parses the elements that are complete in `bytes`, and keeps the one that is not. */
  async #parse(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    this.#bytes = bytes;
    let at = 0;
    while (!this.isDone) {
      const next = this.#element(at);
      if (next === undefined) break;
      at = next;
      if (this.#needsLasting()) this.#lasting = await this.#plan.lasting();
      this.#complete();
    }
    this.#position += at;
    this.#skipBytes += Math.max(0, at - bytes.length);
    if (at < bytes.length && !this.isDone) this.#keep(bytes.subarray(at));
  }

  /** Keeps a part of an element, and the memory that it is in. */
  #keep(bytes: Uint8Array<ArrayBuffer>): void {
    this.#memory.use(1);
    this.#rest.push({ bytes, memory: this.#memory });
    this.#restBytes += bytes.length;
  }

  /** Returns the kept parts and `last` as one, in the current memory. */
  #joined(last: Uint8Array): Uint8Array<ArrayBuffer> {
    const joined = this.#memory.take(this.#restBytes + last.length);
    let at = 0;
    for (const { bytes, memory } of this.#rest.splice(0)) {
      joined.set(bytes, at);
      at += bytes.length;
      memory.release();
    }
    joined.set(last, at);
    this.#restBytes = 0;
    return joined;
  }

  /** Ends all segments. */
  end(): PacketBatch[] {
    for (const segment of this.#open.splice(0)) this.#batch(segment, true);
    return this.#batches.splice(0);
  }

  /** Parses the element at offset `at` and returns the offset of the next one; undefined if it is incomplete. */
  #element(at: number): number | undefined {
    const bytes = this.#bytes;
    const head = readEbmlHead(bytes, at);
    if (!head) {
      this.isDone = bytes.length - at >= EBML_HEAD_BYTES;
      this.#neededBytes = EBML_HEAD_BYTES;
      return undefined;
    }
    const { id, start, end } = head;
    if (id === MATROSKA.cluster) return start;
    if (end === undefined) {
      this.isDone = true;
      return undefined;
    }
    if (id !== CLUSTER.timestamp && id !== CLUSTER.simpleBlock && id !== CLUSTER.blockGroup) return end;
    if (end - start > ELEMENT_LIMIT_BYTES)
      throw new DecodeError("Matroska", start, `element of ${end - start} bytes`);
    if (end > bytes.length) {
      this.#neededBytes = end - at;
      return undefined;
    }
    if (id === CLUSTER.timestamp) this.#clusterTime = ebmlUint(bytes, start, end);
    else if (id === CLUSTER.blockGroup) this.#block(parseBlockGroup(bytes, start, end), start);
    else if (readBlockHead(bytes, start)) this.#block(parseSimpleBlock(bytes, start, end), start);
    return end;
  }

  #block(block: MatroskaBlock | undefined, at: number): void {
    if (!block) return;
    const time = this.#clusterTime + block.relativeTime;
    if (block.track === this.#plan.leading) {
      this.#leadingTime = time;
      if (block.isKey) this.#border(time, at);
      const newest = this.#open.at(-1)!;
      if (this.#isInside && newest.to === Number.POSITIVE_INFINITY) this.#add(newest, time, block);
      return;
    }
    if (!this.#isInside || !this.#others.some(({ track }) => track.number === block.track)) return;
    this.#seen.set(block.track, Math.max(time, this.#seen.get(block.track) ?? time));
    const segment = this.#open.find(({ to }) => time < to);
    if (segment && time >= segment.from) this.#add(segment, time, block);
  }

  /** Begins and ends segments at a key frame of the leading track. */
  #border(time: number, at: number): void {
    const { segments } = this.#plan;
    const isAtLeast = (seconds: number) => time >= seconds / this.#plan.tickSeconds - 0.5;
    if (!this.#isInside && isAtLeast(segments[0]!.startSeconds)) {
      this.#isInside = true;
      this.#open[0]!.from = time;
    }
    while (
      this.#open.at(-1)!.to === Number.POSITIVE_INFINITY &&
      isAtLeast(segments[this.#index]!.endSeconds)
    ) {
      const ended = this.#open.at(-1)!;
      ended.to = time;
      ended.lastByte = this.#position + at + LATE_AUDIO_BYTES;
      if (this.#index === segments.length - 1) return;
      this.#index++;
      this.#begin(time);
    }
  }

  #begin(from: number): void {
    const open = {
      from,
      to: Number.POSITIVE_INFINITY,
      lastTime: undefined,
      lastByte: 0,
      bytes: 0,
      packets: 0,
    };
    this.#open.push({ ...open, tracks: this.#plan.begin() });
  }

  #add(segment: Collecting, time: number, block: MatroskaBlock): void {
    const packets = segment.tracks.find(({ track }) => track.number === block.track);
    if (!packets) return;
    this.#memory.use(block.frames.length);
    packets.add(time, block, this.#memory);
    for (const frame of block.frames) segment.bytes += frame.length;
    checkSegmentSize(segment.bytes, ++segment.packets);
  }

  /** The collectors of the tracks other than the leading one. */
  get #others(): readonly TrackPackets[] {
    return this.#open[0]!.tracks.filter(({ track }) => track.number !== this.#plan.leading);
  }

  /** Returns true if a segment has ended, and a track that has no block yet could have stored its audio late. */
  #needsLasting(): boolean {
    if (this.#lasting || !this.#open[0] || this.#open[0].to === Number.POSITIVE_INFINITY) return false;
    return this.#others.some(({ track }) => !this.#seen.has(track.number));
  }

  /** Ends the segments whose audio has been found, and those whose audio is not waited for any longer. */
  #complete(): void {
    for (let first = this.#open[0]; first && first.to !== Number.POSITIVE_INFINITY; first = this.#open[0]) {
      const { to, lastByte } = first;
      first.lastTime ??= to + this.#searchTicks(to);
      const isComplete = this.#others.every(({ track }) => (this.#seen.get(track.number) ?? -1) >= to);
      const isOver = this.#leadingTime > first.lastTime || this.#position >= lastByte;
      if (!isComplete && !isOver) return;
      this.#batch(first, true);
      this.#open.shift();
      if (this.#open.length > 0) continue;
      this.isDone = true;
      return;
    }
  }

  /** How far after a border at `to` the other tracks are searched, in ticks of the leading track. */
  #searchTicks(to: number): number {
    const near = NEAR_AUDIO_SECONDS / this.#plan.tickSeconds;
    const isMissing = this.#others.some(({ track: { number } }) => {
      const seen = this.#seen.get(number);
      return seen === undefined ? this.#lasting?.has(number) : to - seen > near;
    });
    return isMissing ? LATE_AUDIO_SECONDS / this.#plan.tickSeconds : near;
  }

  /** Puts the frames since the last batch into one. A segment without frames is skipped unless it is the only one. */
  #batch({ tracks, packets: count }: Collecting, endsSegment: boolean): void {
    const packets = tracks.flatMap((track, index) => track.take(index));
    const isSkipped = count === 0 && this.#plan.segments.length > 1;
    if (packets.length > 0 || (endsSegment && !isSkipped)) this.#batches.push({ packets, endsSegment });
  }
}
