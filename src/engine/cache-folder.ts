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
import { BATCH_BYTES, WriteQueue } from "./write-queue.ts";

/** After a failed write the disk is left alone for so long; playback goes on from memory. */
const RETRY_MS = 30_000;
/** The record follows what is on disk by so much: a crash costs at most these seconds, or their re-verification. */
const RECORD_INTERVAL_MS = 5_000;

/** What the folder tells its store. */
export interface FolderOwner {
  isWanted(piece: number): boolean;
  evictedFromDisk(piece: number): void;
}

/** The disk as a transfer has it. */
export interface ContentFolder extends PieceDisk {
  /** Bytes on disk that are this content's. */
  readonly bytes: number;
  /** Says whose pieces these are; called once, before anything is saved. */
  serve(owner: FolderOwner): void;
  /** Writes what still waits; closes all files. */
  close(): Promise<void>;
}

/**
 * The disk cache of one content: a folder with segment files and a record. Writing goes on behind playback, one write
 * at a time; what cannot be written stays in memory as long as there is room.
 */
export class CacheFolder implements ContentFolder {
  readonly keeps = true;
  readonly #house: CacheHouse;
  readonly #shelf: CacheShelf;
  readonly #layout: CacheLayout;
  readonly #pieces: Bits;
  readonly #segments = new Map<number, CachedSegment>();
  readonly #open: OpenSegments;
  #owner: FolderOwner | undefined;
  readonly #queue: WriteQueue;
  /** Segments whose files have to go. */
  readonly #doomed: number[] = [];
  /** All that touches the segment files, in order. */
  #work: Promise<void>;
  #isPumping = false;
  #retryAt: Instant | undefined;
  /** One record after the other, beside the writing of pieces. */
  #recording: Promise<void> = Promise.resolve();
  #hasRecord: boolean;
  #cancelRecord: (() => void) | undefined;
  #hasToldOfLoss = false;
  /** Where neighbouring pieces are put together to be written. */
  #run: Uint8Array | undefined;

  constructor(
    house: CacheHouse,
    shelf: CacheShelf,
    layout: CacheLayout,
    held: { pieces: Bits; segments: readonly CachedSegment[]; hasRecord: boolean },
    before: Promise<void>,
  ) {
    this.#house = house;
    this.#shelf = shelf;
    this.#layout = layout;
    this.#pieces = held.pieces;
    this.#hasRecord = held.hasRecord;
    for (const segment of held.segments) this.#segments.set(segment.index, segment);
    this.#open = new OpenSegments(house.files, shelf.path);
    this.#queue = new WriteQueue(layout, house.clock, () => house.memoryChanged());
    this.#work = before;
  }

  serve(owner: FolderOwner): void {
    this.#owner = owner;
  }

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

  async close(): Promise<void> {
    await this.#work;
    this.#cancelRecord?.();
    this.#cancelRecord = undefined;
    await this.#recordNow();
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
    while (this.#doomed.length > 0 || !this.#queue.isEmpty) {
      const doomed = this.#doomed.pop();
      if (doomed !== undefined) {
        await this.#remove(doomed);
        continue;
      }
      const { batch, lost } = this.#queue.next();
      if (lost > 0) this.#tellOfLoss();
      if (batch.length > 0) await this.#write(batch);
      this.#queue.done();
    }
    this.#isPumping = false;
  }

  #tellOfLoss(): void {
    if (this.#hasToldOfLoss) return;
    this.#hasToldOfLoss = true;
    this.#house.log.info("the disk is too slow to keep all that is played", {
      content: this.#shelf.infohash,
    });
  }

  async #write(batch: readonly MemoryPiece[]): Promise<void> {
    const first = batch[0]!;
    const segment = this.#segment(segmentOf(this.#layout, first.piece));
    const bytes = batch.reduce((sum, entry) => sum + entry.bytes.length, 0);
    if (!this.#house.makeRoom(bytes, segment)) {
      this.#leaveInMemory(batch);
      return;
    }
    try {
      const at = offsetInSegment(this.#layout, first.piece);
      await this.#open.use(segment.index, (file) => file.write(at, this.#joined(batch, bytes)));
      // Other content may have needed the room meanwhile: the file goes next.
      if (this.#doomed.includes(segment.index)) this.#leaveInMemory(batch);
      else this.#saved(batch, segment, bytes);
    } catch (error) {
      this.#failed(error, batch);
    }
    this.#house.wrote(bytes);
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
    // Without any record the next start could not tell what this is.
    if (this.#hasRecord) this.#recordSoon();
    else void this.#recordNow();
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
    this.#leaveInMemory(this.#queue.clear());
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
      void this.#recordNow();
    });
  }

  /** Not behind the pieces that wait: a disk that is busy all the time would never get to it. */
  #recordNow(): Promise<void> {
    this.#hasRecord = true;
    this.#recording = this.#recording.then(() => this.#writeRecord());
    return this.#recording;
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
