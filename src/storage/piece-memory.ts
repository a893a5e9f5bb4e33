import { type Instant, instant } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { PieceBufferPool } from "./piece-buffers.ts";

/**
 * Reading faster than this (24 MB/s, more than any film needs) frees memory soon, so downloading waits for it. Evicted pieces would
 * be loaded and hashed again, which slows the reader down, so that it needs ever more evicted pieces.
 */
const FAST_READ_BYTES_PER_MS = 24_000;
/** After its last piece, a fast reader is waited for this long at most. */
const READER_WAIT_MS = 100;

/** One verified piece in memory. */
export interface MemoryPiece {
  readonly owner: MemoryOwner;
  readonly piece: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** `unsaved`: queued for the disk; `writing`: must stay in memory; `saved`: on disk; `alone`: in memory only, never written. */
  state: "unsaved" | "writing" | "saved" | "alone";
  /** A reader has used it since it was loaded into memory. */
  isRead: boolean;
  /** It has waited longer for the disk than the swarm waits. */
  isLate: boolean;
}

/** The owner of pieces in memory: the store of one transfer. */
export interface MemoryOwner {
  /** Returns true if the piece lies in the window of a reader. */
  isWanted(piece: number): boolean;
  /** Called when the piece was removed from memory. */
  evicted(entry: MemoryPiece): void;
}

/**
 * The verified pieces in memory of all transfers, least recently read first. When the buffer pool needs room it evicts in this
 * order: pieces that no reader needs and that are on disk or will never be; if no such piece will be available soon, pieces that a
 * reader needs but that are on disk, unless readers are about to free memory; and as a last resort, unneeded pieces that have waited too long for the disk. A needed piece
 * that exists only in memory is never evicted: downloading waits for its reader.
 */
export class PieceMemory {
  readonly #pool: PieceBufferPool;
  readonly #clock: Clock;
  readonly #entries = new Set<MemoryPiece>();
  /** Until then, readers are as fast as `FAST_READ_BYTES_PER_MS`. */
  #fastUntil: Instant;
  #isWaiting = false;

  constructor(pool: PieceBufferPool, clock: Clock) {
    this.#pool = pool;
    this.#clock = clock;
    this.#fastUntil = clock.now();
    pool.setReclaim((bytes, mustFree) => this.#reclaim(bytes, mustFree));
  }

  add(entry: MemoryPiece): void {
    this.#entries.add(entry);
  }

  /** Marks a piece as just read. */
  touch(entry: MemoryPiece): void {
    if (!entry.isRead) this.#beginsToRead(entry);
    entry.isRead = true;
    if (this.#entries.delete(entry)) this.#entries.add(entry);
  }

  /** Removes a piece and returns its buffer to the pool. */
  remove(entry: MemoryPiece): void {
    if (this.#entries.delete(entry)) this.#pool.give(entry.bytes);
  }

  /** A piece may have become evictable: a window moved, or a piece is on disk now. */
  changed(): void {
    this.#pool.changed();
  }

  /** A piece of `n` bytes keeps its reader fast for the time in which a reader of the limiting rate reads it. */
  #beginsToRead({ bytes }: MemoryPiece): void {
    const now = this.#clock.now();
    const until = Math.max(this.#fastUntil, now) + bytes.length / FAST_READ_BYTES_PER_MS;
    this.#fastUntil = instant(Math.min(until, now + READER_WAIT_MS));
  }

  /** Returns true while readers are fast; then `changed` is called when they no longer are. */
  #areReadersFast(): boolean {
    if (this.#fastUntil <= this.#clock.now()) return false;
    if (!this.#isWaiting) {
      this.#isWaiting = true;
      this.#clock.at(this.#fastUntil, () => {
        this.#isWaiting = false;
        this.changed();
      });
    }
    return true;
  }

  #reclaim(bytes: number, mustFree: boolean): boolean {
    for (let freed = 0; freed < bytes; ) {
      const entry = this.#leastNeeded(mustFree);
      if (entry === undefined) break;
      this.remove(entry);
      entry.owner.evicted(entry);
      freed += entry.bytes.length;
    }
    return mustFree && (this.#isDiskAtWork() || this.#areReadersFast());
  }

  /** Returns true if a piece is expected on disk soon. */
  #isDiskAtWork(): boolean {
    for (const entry of this.#entries) if (isBeingSaved(entry)) return true;
    return false;
  }

  #leastNeeded(mustFree: boolean): MemoryPiece | undefined {
    let late: MemoryPiece | undefined;
    let unread: MemoryPiece | undefined;
    let read: MemoryPiece | undefined;
    let isOtherBeingSaved = false;
    for (const entry of this.#entries) {
      const isWanted = entry.owner.isWanted(entry.piece);
      if (!isWanted && (entry.state === "saved" || entry.state === "alone")) return entry;
      if (!isWanted && isBeingSaved(entry)) isOtherBeingSaved = true;
      else if (!isWanted && entry.state === "unsaved") late ??= entry;
      else if (entry.state === "saved" && entry.isRead) read ??= entry;
      else if (entry.state === "saved") unread = entry;
    }
    if (mustFree && late) return late;
    // Reloading a needed piece costs a read and a hash, so wait if another piece is about to be saved. Otherwise evict the piece that
    // arrived last: it is needed last.
    const needed = unread ?? read;
    return isOtherBeingSaved || (needed && this.#areReadersFast()) ? undefined : needed;
  }
}

/** Returns true if the piece is expected on disk soon. */
function isBeingSaved({ state, isLate }: MemoryPiece): boolean {
  return !isLate && (state === "unsaved" || state === "writing");
}
