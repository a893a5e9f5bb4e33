import type { Bits } from "../base/bits.ts";
import { messageOf } from "../base/errors.ts";
import { after, type Instant } from "../base/time.ts";
import type {
  CacheContext,
  CachedSegment,
  CacheShelf,
  ContentFolder,
  FolderOwner,
} from "./cache-contract.ts";
import {
  type CacheLayout,
  offsetInSegment,
  pieceBytes,
  piecesOfSegment,
  segmentName,
  segmentOf,
} from "./cache-layout.ts";
import { type CacheRecord, encodeRecord, RECORD_NAME } from "./cache-record.ts";
import { OpenSegments } from "./open-segments.ts";
import type { MemoryPiece } from "./piece-memory.ts";
import { WriteQueue } from "./write-queue.ts";

/** Pause after a failed write; playback continues from memory meanwhile. */
const RETRY_MS = 30_000;
/** Delay before a change is recorded: after a crash, pieces of this interval are verified again or fetched again. */
const RECORD_INTERVAL_MS = 5_000;

/**
 * The disk cache of one content: a folder with segment files and a record. Pieces are written in the background, one write
 * at a time; a piece that cannot be written stays in memory until memory is needed.
 */
export class CacheFolder implements ContentFolder {
  readonly keeps = true;
  readonly #cache: CacheContext;
  readonly #shelf: CacheShelf;
  readonly #layout: CacheLayout;
  readonly #pieces: Bits;
  readonly #segments = new Map<number, CachedSegment>();
  readonly #open: OpenSegments;
  #owner: FolderOwner | undefined;
  readonly #queue: WriteQueue;
  /** Evicted segments whose files are not removed yet. */
  readonly #evicted: number[] = [];
  /** Completes when all queued work on the segment files is done. */
  #work: Promise<void>;
  #isPumping = false;
  #retryAt: Instant | undefined;
  /** Completes when the last record is written. Records are written one at a time, independent of pieces. */
  #recording: Promise<void> = Promise.resolve();
  #hasRecord: boolean;
  #cancelRecord: (() => void) | undefined;
  #hasReportedLoss = false;

  constructor(
    cache: CacheContext,
    shelf: CacheShelf,
    layout: CacheLayout,
    held: { pieces: Bits; segments: readonly CachedSegment[]; hasRecord: boolean },
    before: Promise<void>,
  ) {
    this.#cache = cache;
    this.#shelf = shelf;
    this.#layout = layout;
    this.#pieces = held.pieces;
    this.#hasRecord = held.hasRecord;
    for (const segment of held.segments) this.#segments.set(segment.index, segment);
    this.#open = new OpenSegments(cache.files, shelf.path);
    this.#queue = new WriteQueue(layout, cache.clock, () => cache.memoryChanged());
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
    if (this.#retryAt !== undefined && this.#cache.clock.now() < this.#retryAt) {
      entry.state = "alone";
      return;
    }
    this.#queue.push(entry);
    this.#startPump();
  }

  async load(piece: number, into: Uint8Array<ArrayBuffer>): Promise<void> {
    const index = segmentOf(this.#layout, piece);
    const segment = this.#segments.get(index);
    if (segment) this.#cache.touch(segment);
    await this.#open.use(index, (file) => file.read(offsetInSegment(this.#layout, piece), into));
  }

  forget(piece: number): void {
    if (!this.#pieces.clear(piece)) return;
    this.#cache.log.warn("cached piece was damaged", { content: this.#shelf.infohash, piece });
    const segment = this.#segments.get(segmentOf(this.#layout, piece));
    if (segment) this.#cache.resize(segment, -pieceBytes(this.#layout, piece));
    this.#recordSoon();
  }

  /** Returns true if a reader will soon need a piece of this segment. */
  isWanted(index: number): boolean {
    for (const piece of piecesOfSegment(this.#layout, index)) if (this.#owner?.isWanted(piece)) return true;
    return false;
  }

  /** Evicts one segment; its file is removed in the background. */
  evict(index: number): void {
    if (!this.#segments.delete(index)) return;
    for (const piece of piecesOfSegment(this.#layout, index)) {
      if (this.#pieces.clear(piece)) this.#owner?.evictedFromDisk(piece);
    }
    this.#evicted.push(index);
    this.#startPump();
    this.#recordSoon();
  }

  async close(): Promise<void> {
    await this.#work;
    this.#cancelRecord?.();
    this.#cancelRecord = undefined;
    await this.#recordNow();
    await this.#open.close();
    this.#cache.left(this.#shelf);
  }

  #startPump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    this.#work = this.#work.then(() => this.#pump());
  }

  /** Removes files before it writes: the space is needed first, and a new file may reuse the name of a removed one. */
  async #pump(): Promise<void> {
    while (this.#evicted.length > 0 || !this.#queue.isEmpty) {
      const evicted = this.#evicted.pop();
      if (evicted !== undefined) {
        await this.#remove(evicted);
        continue;
      }
      const { batch, lost } = this.#queue.next();
      if (lost > 0) this.#reportLoss();
      if (batch.length > 0) await this.#write(batch);
      this.#queue.done();
    }
    this.#isPumping = false;
  }

  #reportLoss(): void {
    if (this.#hasReportedLoss) return;
    this.#hasReportedLoss = true;
    this.#cache.log.info("the disk is too slow to cache every piece", {
      content: this.#shelf.infohash,
    });
  }

  async #write(batch: readonly MemoryPiece[]): Promise<void> {
    const first = batch[0]!;
    const segment = this.#segment(segmentOf(this.#layout, first.piece));
    const bytes = batch.reduce((sum, entry) => sum + entry.bytes.length, 0);
    if (!this.#cache.makeRoom(bytes, segment)) {
      this.#leaveInMemory(batch);
      return;
    }
    try {
      const at = offsetInSegment(this.#layout, first.piece);
      await this.#open.use(segment.index, (file) => file.write(at, ...batch.map((entry) => entry.bytes)));
      // The segment may have been evicted during the write: its file is removed next.
      if (this.#evicted.includes(segment.index)) this.#leaveInMemory(batch);
      else this.#saved(batch, segment, bytes);
    } catch (error) {
      this.#failed(error, batch);
    }
    this.#cache.wrote(bytes);
    this.#cache.memoryChanged();
  }

  #saved(batch: readonly MemoryPiece[], segment: CachedSegment, bytes: number): void {
    for (const entry of batch) {
      entry.state = "saved";
      this.#pieces.set(entry.piece);
    }
    this.#segments.set(segment.index, segment);
    this.#cache.resize(segment, bytes);
    this.#cache.touch(segment);
    if (this.#retryAt !== undefined) this.#cache.log.info("the disk cache is writable again");
    this.#retryAt = undefined;
    // Without a record the next start would remove the folder.
    if (this.#hasRecord) this.#recordSoon();
    else void this.#recordNow();
  }

  #failed(error: unknown, batch: readonly MemoryPiece[]): void {
    const { clock, log } = this.#cache;
    if (this.#retryAt === undefined) {
      log.warn("cannot write to the disk cache; playback continues from memory", {
        reason: messageOf(error),
      });
    }
    this.#retryAt = after(clock.now(), RETRY_MS);
    this.#leaveInMemory(batch);
    this.#leaveInMemory(this.#queue.clear());
  }

  #leaveInMemory(batch: readonly MemoryPiece[]): void {
    for (const entry of batch) entry.state = "alone";
    this.#cache.memoryChanged();
  }

  #segment(index: number): CachedSegment {
    return this.#segments.get(index) ?? this.#shelf.segment(index, this);
  }

  async #remove(index: number): Promise<void> {
    await this.#open.forget(index);
    await this.#cache.remove(`${this.#shelf.path}/${segmentName(index)}`);
  }

  #recordSoon(): void {
    const { clock } = this.#cache;
    this.#cancelRecord ??= clock.at(after(clock.now(), RECORD_INTERVAL_MS), () => {
      this.#cancelRecord = undefined;
      void this.#recordNow();
    });
  }

  /** Does not queue behind pieces: on a disk that is always busy the record would never be written. */
  #recordNow(): Promise<void> {
    this.#hasRecord = true;
    this.#recording = this.#recording.then(() => this.#writeRecord());
    return this.#recording;
  }

  async #writeRecord(): Promise<void> {
    const { files, clock, log } = this.#cache;
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
      // Without the record the next start verifies the pieces again.
      log.debug("cannot write the record of the disk cache", { reason: messageOf(error) });
    }
  }
}
