import type { PieceBufferPool } from "./piece-buffers.ts";

/** One verified piece in memory. */
export interface MemoryPiece {
  readonly owner: MemoryOwner;
  readonly piece: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** `unsaved` waits to be written, `writing` must stay where it is, `saved` is on disk, `alone` will never be. */
  state: "unsaved" | "writing" | "saved" | "alone";
  /** Somebody has read of it since it came to memory. */
  isRead: boolean;
  /** It has waited for the disk for longer than the swarm waits with it. */
  isLate: boolean;
}

/** Whose pieces they are: the store of one transfer. */
export interface MemoryOwner {
  /** Whether a reader will come to this piece within its window. */
  isWanted(piece: number): boolean;
  /** The piece left memory. */
  evicted(entry: MemoryPiece): void;
}

/**
 * The verified pieces in memory, of all transfers together, the least recently read first. Pieces go when the buffer
 * pool needs room: first those that no reader wants and that are on disk (or never will be), then, where no such piece is
 * about to be there, those that are wanted but on disk. What waits to be written goes only where there is no other way, no
 * reader wants it, and the disk has had its time for it. A wanted piece that is nowhere else never goes: downloading waits
 * for its reader.
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

  /** Marks as read just now. */
  touch(entry: MemoryPiece): void {
    entry.isRead = true;
    if (this.#entries.delete(entry)) this.#entries.add(entry);
  }

  /** Takes a piece out and its buffer back. */
  remove(entry: MemoryPiece): void {
    if (this.#entries.delete(entry)) this.#pool.give(entry.bytes);
  }

  /** Something may have become free: a window moved on, or a piece is on disk now. */
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

  /** Whether something will be on disk soon. */
  #isDiskAtWork(): boolean {
    for (const entry of this.#entries) if (isOnItsWay(entry)) return true;
    return false;
  }

  #leastNeeded(mustFree: boolean): MemoryPiece | undefined {
    let late: MemoryPiece | undefined;
    let unread: MemoryPiece | undefined;
    let read: MemoryPiece | undefined;
    let isSomeComing = false;
    for (const entry of this.#entries) {
      const isWanted = entry.owner.isWanted(entry.piece);
      if (!isWanted && (entry.state === "saved" || entry.state === "alone")) return entry;
      if (!isWanted && isOnItsWay(entry)) isSomeComing = true;
      else if (!isWanted && entry.state === "unsaved") late ??= entry;
      else if (entry.state === "saved" && entry.isRead) read ??= entry;
      else if (entry.state === "saved") unread = entry;
    }
    if (mustFree && late) return late;
    // What a reader wants is not read from disk and verified anew for want of a moment's patience; and where it has to be,
    // it is what came last: that is wanted last.
    return isSomeComing ? undefined : (unread ?? read);
  }
}

/** Whether it will be on disk soon. */
function isOnItsWay({ state, isLate }: MemoryPiece): boolean {
  return !isLate && (state === "unsaved" || state === "writing");
}
