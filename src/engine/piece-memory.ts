import type { PieceBufferPool } from "./piece-buffers.ts";

/** One verified piece in memory. */
export interface MemoryPiece {
  readonly owner: MemoryOwner;
  readonly piece: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** `unsaved` waits to be written, `writing` must stay where it is, `saved` is on disk, `alone` will never be. */
  state: "unsaved" | "writing" | "saved" | "alone";
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
 * pool needs room: first those that no reader wants and that are on disk (or never will be), then those that are wanted but on
 * disk. What waits to be written goes only where there is no other way, no reader wants it, and the disk has had its time
 * for it. A wanted piece that is nowhere else never goes: downloading waits for its reader.
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
      if (entry === undefined) return this.#isDiskAtWork();
      this.remove(entry);
      entry.owner.evicted(entry);
      freed += entry.bytes.length;
    }
    return this.#isDiskAtWork();
  }

  /** Whether something will be on disk soon. */
  #isDiskAtWork(): boolean {
    for (const { state, isLate } of this.#entries)
      if (!isLate && (state === "unsaved" || state === "writing")) return true;
    return false;
  }

  #leastNeeded(mustFree: boolean): MemoryPiece | undefined {
    let best: MemoryPiece | undefined;
    let bestCost = 3;
    for (const entry of this.#entries) {
      const cost = evictionCost(entry, mustFree);
      if (cost >= bestCost) continue;
      if (cost === 0) return entry;
      best = entry;
      bestCost = cost;
    }
    return best;
  }
}

function evictionCost(entry: MemoryPiece, mustFree: boolean): number {
  if (entry.state === "writing") return 3;
  const isWanted = entry.owner.isWanted(entry.piece);
  if (entry.state === "unsaved") return isWanted || !mustFree || !entry.isLate ? 3 : 1;
  if (entry.state === "alone") return isWanted ? 3 : 0;
  return isWanted ? 2 : 0;
}
