import { Bits } from "../base/bits.ts";
import type { ByteRange } from "../base/range.ts";
import type { SwarmLayout } from "../protocol/swarm/contract.ts";
import { type PieceCheck, pieceBytesOf } from "../protocol/swarm/piece-check.ts";
import type { PieceBufferPool } from "./piece-buffers.ts";
import type { MemoryOwner, MemoryPiece, PieceMemory } from "./piece-memory.ts";

/** The disk as a piece store uses it: the cache folder of its transfer. */
export interface PieceDisk {
  /** True if it stores pieces; a read-only folder does not. */
  readonly keeps: boolean;
  has(piece: number): boolean;
  /** Writes the piece in the background; then updates `entry.state` and calls `PieceMemory.changed`. */
  save(entry: MemoryPiece): void;
  /** Fills `into` with the piece; rejects if it cannot be read. */
  load(piece: number, into: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Discards a piece that is damaged on disk. */
  forget(piece: number): void;
}

/** Dependencies of {@link PieceStore}. */
interface PieceStoreDependencies {
  readonly layout: SwarmLayout;
  readonly pool: PieceBufferPool;
  readonly memory: PieceMemory;
  /** Undefined: pieces stay in memory only. */
  readonly disk: PieceDisk | undefined;
  readonly isRight: PieceCheck;
  /** Called when neither memory nor disk holds the piece any more. */
  readonly dropped: (piece: number) => void;
}

/**
 * The verified pieces of one transfer, in memory and on disk. Pieces loaded from disk are verified again: a damaged cache file
 * costs a download, never a wrong byte.
 */
export class PieceStore implements MemoryOwner {
  readonly layout: SwarmLayout;
  /** Pieces in memory or on disk. */
  readonly held: Bits;
  readonly #parts: PieceStoreDependencies;
  readonly #entries: (MemoryPiece | undefined)[];
  readonly #loads = new Map<number, Promise<Uint8Array | undefined>>();
  readonly #waiters = new Map<number, Set<() => void>>();
  readonly #wants: Uint16Array;

  constructor(parts: PieceStoreDependencies) {
    const { layout, disk } = parts;
    this.layout = layout;
    this.#parts = parts;
    this.#entries = new Array(layout.pieceCount);
    this.#wants = new Uint16Array(layout.pieceCount);
    this.held = new Bits(layout.pieceCount);
    if (disk) for (let i = 0; i < layout.pieceCount; i++) if (disk.has(i)) this.held.set(i);
  }

  /** True if pieces are written to disk. */
  get isOnDisk(): boolean {
    return this.#parts.disk?.keeps === true;
  }

  /** The length of `piece` in bytes. */
  pieceBytes(piece: number): number {
    return pieceBytesOf(this.layout, piece);
  }

  /** Adds a verified piece; its buffer comes from the pool and now belongs to the store. */
  put(piece: number, bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#entries[piece]) {
      this.#parts.pool.give(bytes); // It was loaded from disk in the meantime.
      return;
    }
    const { disk } = this.#parts;
    const entry = this.#add(piece, bytes, disk === undefined ? "alone" : "unsaved");
    disk?.save(entry);
    this.held.set(piece);
    this.#wake(piece);
  }

  /** The bytes of a piece in memory, as a view that is valid until the next `await`; undefined if it is not in memory. Counts as a read. */
  peek(piece: number): Uint8Array | undefined {
    const entry = this.#entries[piece];
    if (entry) this.#parts.memory.touch(entry);
    return entry?.bytes;
  }

  /** Loads a piece from disk: a view that is valid until the next `await`, or undefined if the piece is not available. */
  load(piece: number): Promise<Uint8Array | undefined> {
    const running = this.#loads.get(piece);
    if (running) return running;
    const load = this.#load(piece).finally(() => this.#loads.delete(piece));
    this.#loads.set(piece, load);
    return load;
  }

  /** Calls `run` once, as soon as the piece is held; the returned function cancels. */
  whenHeld(piece: number, run: () => void): () => void {
    const waiters = this.#waiters.get(piece) ?? new Set();
    this.#waiters.set(piece, waiters);
    waiters.add(run);
    return () => {
      waiters.delete(run);
      if (waiters.size === 0 && this.#waiters.get(piece) === waiters) this.#waiters.delete(piece);
    };
  }

  /** Moves a reader's window (in bytes of the whole content) from `before` to `now`; undefined stands for none. */
  moveWindow(before: ByteRange | undefined, now: ByteRange | undefined): void {
    if (now) this.#count(now, 1);
    if (before) this.#count(before, -1);
    if (before) this.#parts.memory.changed();
  }

  /** Frees the memory of pieces that are on disk and that no reader needs soon. */
  releaseSaved(): void {
    for (const entry of this.#entries) {
      if (entry?.state !== "saved" || this.isWanted(entry.piece)) continue;
      this.#parts.memory.remove(entry);
      this.evicted(entry);
    }
    this.#parts.memory.changed();
  }

  isWanted(piece: number): boolean {
    return this.#wants[piece]! > 0;
  }

  evicted(entry: MemoryPiece): void {
    this.#entries[entry.piece] = undefined;
    if (entry.state === "unsaved") entry.state = "alone"; // It is never written: its buffer was returned.
    if (!this.#parts.disk?.has(entry.piece)) this.#drop(entry.piece);
  }

  /** The disk cache evicted a piece. */
  evictedFromDisk(piece: number): void {
    const entry = this.#entries[piece];
    if (entry === undefined) this.#drop(piece);
    else if (entry.state === "saved") entry.state = "alone";
  }

  /** Returns all memory to the pool. */
  close(): void {
    for (const entry of this.#entries) if (entry) this.#parts.memory.remove(entry);
    this.#entries.fill(undefined);
    this.#parts.memory.changed();
  }

  #add(piece: number, bytes: Uint8Array<ArrayBuffer>, state: MemoryPiece["state"]): MemoryPiece {
    const entry: MemoryPiece = { owner: this, piece, bytes, state, isRead: false, isLate: false };
    this.#entries[piece] = entry;
    this.#parts.memory.add(entry);
    return entry;
  }

  async #load(piece: number): Promise<Uint8Array | undefined> {
    const { disk, pool, isRight, layout } = this.#parts;
    const length = this.pieceBytes(piece);
    // One load at a time may exceed the budget: a piece that is not kept in memory would be loaded again for each of its chunks.
    const pooled = pool.take(length, false) ?? (this.#loads.size === 0 ? pool.takeAnyway(length) : undefined);
    const bytes = pooled ?? new Uint8Array(length);
    const isGood = await disk!.load(piece, bytes).then(
      () => isRight(layout, piece, bytes),
      () => false,
    );
    const inMemory = this.#entries[piece];
    if (!isGood || inMemory) {
      if (pooled) pool.give(pooled);
      if (!isGood) disk!.forget(piece);
      if (!isGood && !inMemory) this.#drop(piece);
      return inMemory?.bytes;
    }
    if (pooled) this.#add(piece, pooled, "saved");
    return bytes;
  }

  #drop(piece: number): void {
    if (this.held.clear(piece)) this.#parts.dropped(piece);
  }

  #count(range: ByteRange, by: number): void {
    const { pieceLength } = this.layout;
    const last = Math.ceil(range.end / pieceLength);
    for (let i = Math.floor(range.start / pieceLength); i < last; i++) this.#wants[i]! += by;
  }

  #wake(piece: number): void {
    const waiters = this.#waiters.get(piece);
    if (waiters === undefined) return;
    this.#waiters.delete(piece);
    for (const run of waiters) run();
  }
}
