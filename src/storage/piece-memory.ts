import type { PieceBufferPool } from "./piece-buffers.ts";

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
 * reader needs but that are on disk; and as a last resort, unneeded pieces that have waited too long for the disk. A needed piece
 * that exists only in memory is never evicted: downloading waits for its reader.
 */
export class PieceMemory {
  readonly #pool: PieceBufferPool;
  readonly #entries = new Set<MemoryPiece>();

  constructor(pool: PieceBufferPool) {
    this.#pool = pool;
    pool.setReclaim((bytes, mustFree) => this.#reclaim(bytes, mustFree));
  }

  add(entry: MemoryPiece): void {
    this.#entries.add(entry);
  }

  /** Marks a piece as just read. */
  touch(entry: MemoryPiece): void {
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

  #reclaim(bytes: number, mustFree: boolean): boolean {
    for (let freed = 0; freed < bytes; ) {
      const entry = this.#leastNeeded(mustFree);
      if (entry === undefined) break;
      this.remove(entry);
      entry.owner.evicted(entry);
      freed += entry.bytes.length;
    }
    return mustFree && this.#isDiskAtWork();
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
    return isOtherBeingSaved ? undefined : (unread ?? read);
  }
}

/** Returns true if the piece is expected on disk soon. */
function isBeingSaved({ state, isLate }: MemoryPiece): boolean {
  return !isLate && (state === "unsaved" || state === "writing");
}
