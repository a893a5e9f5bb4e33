import type { Bits } from "../base/bits.ts";
import { messageOf } from "../base/errors.ts";
import { after, type Instant } from "../base/time.ts";
import {
  type CacheLayout,
  offsetInSegment,
  pieceBytes,
  piecesOfSegment,
  segmentName,
  segmentOf,
} from "./cache-layout.ts";
import { type CacheRecord, encodeRecord, RECORD_NAME } from "./cache-record.ts";
import type { CachedSegment, CacheHouse, CacheShelf } from "./disk-cache.ts";
import { OpenSegments } from "./open-segments.ts";
import type { MemoryPiece } from "./piece-memory.ts";
import type { PieceDisk } from "./piece-store.ts";

/** After a failed write the disk is left alone for so long; playback goes on from memory. */
const RETRY_MS = 30_000;
/** The record follows what is on disk by so much: a crash costs at most these seconds, or their re-verification. */
const RECORD_INTERVAL_MS = 5_000;
/** Neighbouring small pieces are written together, up to so much at once. */
const BATCH_BYTES = 1024 * 1024;

/** What the folder tells its store. */
export interface FolderOwner {
  isWanted(piece: number): boolean;
  evictedFromDisk(piece: number): void;
}

/**
 * The disk cache of one content: a folder with segment files and a record. Writing goes on behind playback, one write
 * at a time; what cannot be written stays in memory as long as there is room.
 */
export class CacheFolder implements PieceDisk {
  readonly #house: CacheHouse;
  readonly #shelf: CacheShelf;
  readonly #layout: CacheLayout;
  readonly #pieces: Bits;
  readonly #segments = new Map<number, CachedSegment>();
  readonly #open: OpenSegments;
  #owner: FolderOwner | undefined;
  #queue: MemoryPiece[] = [];
  /** Segments whose files have to go. */
  readonly #doomed: number[] = [];
  /** All that touches the files, in order. */
  #work: Promise<void>;
  #isPumping = false;
  #retryAt: Instant | undefined;
  /** Where neighbouring pieces are put together to be written. */
  #run: Uint8Array | undefined;
  #cancelRecord: (() => void) | undefined;

  constructor(
    house: CacheHouse,
    shelf: CacheShelf,
    layout: CacheLayout,
    held: { pieces: Bits; segments: readonly CachedSegment[] },
    before: Promise<void>,
  ) {
    this.#house = house;
    this.#shelf = shelf;
    this.#layout = layout;
    this.#pieces = held.pieces;
    for (const segment of held.segments) this.#segments.set(segment.index, segment);
    this.#open = new OpenSegments(house.files, shelf.path);
    this.#work = before;
  }

  /** Says whose pieces these are; called once, before anything is saved. */
  serve(owner: FolderOwner): void {
    this.#owner = owner;
  }

  /** Bytes on disk. */
  get bytes(): number {
    let bytes = 0;
    for (const segment of this.#segments.values()) bytes += segment.bytes;
    return bytes;
  }

  has(piece: number): boolean {
    return this.#pieces.has(piece);
  }

  save(entry: MemoryPiece): void {
    if (this.#retryAt !== undefined && this.#house.clock.now() < this.#retryAt) {
      entry.state = "alone";
      return;
    }
    this.#queue.push(entry);
    this.#startPump();
  }

  async load(piece: number, into: Uint8Array<ArrayBuffer>): Promise<void> {
    const index = segmentOf(this.#layout, piece);
    const segment = this.#segments.get(index);
    if (segment) this.#house.touch(segment);
    await this.#open.use(index, (file) => file.read(offsetInSegment(this.#layout, piece), into));
  }

  forget(piece: number): void {
    if (!this.#pieces.clear(piece)) return;
    this.#house.log.warn("cached piece was damaged", { content: this.#shelf.infohash, piece });
    const segment = this.#segments.get(segmentOf(this.#layout, piece));
    if (segment) this.#house.resize(segment, -pieceBytes(this.#layout, piece));
    this.#recordSoon();
  }

  /** Whether a reader is about to come to a piece of this segment. */
  isWanted(index: number): boolean {
    for (const piece of piecesOfSegment(this.#layout, index)) if (this.#owner?.isWanted(piece)) return true;
    return false;
  }

  /** Gives up one segment to make room; its file goes in the background. */
  evict(index: number): void {
    if (!this.#segments.delete(index)) return;
    for (const piece of piecesOfSegment(this.#layout, index)) {
      if (this.#pieces.clear(piece)) this.#owner?.evictedFromDisk(piece);
    }
    this.#doomed.push(index);
    this.#startPump();
    this.#recordSoon();
  }

  /** Writes what still waits, and the record; closes all files. */
  async close(): Promise<void> {
    await this.#work;
    this.#cancelRecord?.();
    this.#cancelRecord = undefined;
    await this.#writeRecord();
    await this.#open.close();
    this.#house.left(this.#shelf);
  }

  #startPump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    this.#work = this.#work.then(() => this.#pump());
  }

  /** Removes before it writes: the room must be there first, and a new file may have the name of an old one. */
  async #pump(): Promise<void> {
    while (this.#doomed.length > 0 || this.#queue.length > 0) {
      const doomed = this.#doomed.pop();
      if (doomed !== undefined) {
        await this.#remove(doomed);
        continue;
      }
      const batch = this.#nextBatch();
      if (batch.length > 0) await this.#write(batch);
    }
    this.#isPumping = false;
  }

  /** The next run of neighbouring pieces that still wait; those that were given up meanwhile are passed over. */
  #nextBatch(): MemoryPiece[] {
    const batch: MemoryPiece[] = [];
    let bytes = 0;
    let taken = 0;
    for (const entry of this.#queue) {
      const last = batch.at(-1);
      const isNext =
        last === undefined ||
        (entry.piece === last.piece + 1 &&
          // Behind a piece that is shorter than others (the end of a file of version 2) there is a gap.
          last.bytes.length === this.#layout.pieceLength &&
          segmentOf(this.#layout, entry.piece) === segmentOf(this.#layout, last.piece) &&
          bytes + entry.bytes.length <= BATCH_BYTES);
      if (entry.state === "unsaved" && !isNext) break;
      taken++;
      if (entry.state !== "unsaved") continue;
      batch.push(entry);
      bytes += entry.bytes.length;
    }
    this.#queue.splice(0, taken);
    return batch;
  }

  async #write(batch: readonly MemoryPiece[]): Promise<void> {
    const first = batch[0]!;
    const segment = this.#segment(segmentOf(this.#layout, first.piece));
    const bytes = batch.reduce((sum, entry) => sum + entry.bytes.length, 0);
    if (!this.#house.makeRoom(bytes, segment)) {
      this.#leaveInMemory(batch);
      return;
    }
    for (const entry of batch) entry.state = "writing";
    try {
      const at = offsetInSegment(this.#layout, first.piece);
      await this.#open.use(segment.index, (file) => file.write(at, this.#joined(batch, bytes)));
      this.#saved(batch, segment, bytes);
    } catch (error) {
      this.#failed(error, batch);
    }
    this.#house.memoryChanged();
  }

  #saved(batch: readonly MemoryPiece[], segment: CachedSegment, bytes: number): void {
    for (const entry of batch) {
      entry.state = "saved";
      this.#pieces.set(entry.piece);
    }
    this.#segments.set(segment.index, segment);
    this.#house.resize(segment, bytes);
    this.#house.touch(segment);
    if (this.#retryAt !== undefined) this.#house.log.info("the disk cache works again");
    this.#retryAt = undefined;
    this.#recordSoon();
  }

  #failed(error: unknown, batch: readonly MemoryPiece[]): void {
    const { clock, log } = this.#house;
    if (this.#retryAt === undefined) {
      log.warn("the disk cache cannot be written: playback goes on from memory", {
        reason: messageOf(error),
      });
    }
    this.#retryAt = after(clock.now(), RETRY_MS);
    this.#leaveInMemory(batch);
    this.#leaveInMemory(this.#queue.splice(0));
  }

  #leaveInMemory(batch: readonly MemoryPiece[]): void {
    for (const entry of batch) entry.state = "alone";
    this.#house.memoryChanged();
  }

  #segment(index: number): CachedSegment {
    return this.#segments.get(index) ?? this.#shelf.segment(index, this);
  }

  async #remove(index: number): Promise<void> {
    await this.#open.forget(index);
    await this.#house.remove(`${this.#shelf.path}/${segmentName(index)}`);
  }

  #recordSoon(): void {
    const { clock } = this.#house;
    this.#cancelRecord ??= clock.at(after(clock.now(), RECORD_INTERVAL_MS), () => {
      this.#cancelRecord = undefined;
      this.#work = this.#work.then(() => this.#writeRecord());
    });
  }

  async #writeRecord(): Promise<void> {
    const { files, clock, log } = this.#house;
    const lastRead = new Map([...this.#segments.values()].map(({ index, lastRead }) => [index, lastRead]));
    const { pieceLength, pieceCount, length, piecesPerSegment } = this.#layout;
    const savedAtMs = clock.unixSeconds() * 1000;
    const pieces = this.#pieces;
    const record: CacheRecord = {
      pieceLength,
      pieceCount,
      length,
      piecesPerSegment,
      savedAtMs,
      pieces,
      lastRead,
    };
    try {
      await files.replace(`${this.#shelf.path}/${RECORD_NAME}`, encodeRecord(record));
    } catch (error) {
      // Without it the pieces are verified anew at the next start.
      log.debug("the record of the disk cache was not written", { reason: messageOf(error) });
    }
  }

  /** Pieces that lie side by side, as one run of bytes; one write at a time, so one buffer for all. */
  #joined(batch: readonly MemoryPiece[], length: number): Uint8Array {
    if (batch.length === 1) return batch[0]!.bytes;
    this.#run ??= new Uint8Array(BATCH_BYTES);
    let at = 0;
    for (const entry of batch) {
      this.#run.set(entry.bytes, at);
      at += entry.bytes.length;
    }
    return this.#run.subarray(0, length);
  }
}
