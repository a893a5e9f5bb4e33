import { assert } from "../base/assert.ts";
import type { PieceBuffers } from "../protocol/swarm/contract.ts";

/** Pieces that a transfer may always fill, even if the budget is spent, so that no transfer can starve another. */
const GUARANTEED_PIECES = 2;
/** Overdraft for the guaranteed pieces; beyond it a transfer waits for the disk, or pieces that the disk is too slow for are dropped. */
const MAX_OVERDRAFT_BYTES = 8 * 1024 * 1024;
/**
 * Returns buffers to the pool until `bytes` of the budget are free, if possible. With `mustFree` it also drops pieces that the
 * disk is too slow for. Returns true if more memory becomes free by itself, as the disk writes or readers move on.
 */
type Reclaim = (bytes: number, mustFree: boolean) => boolean;

/**
 * The piece buffers of all transfers, both those being filled and those kept for readers, under one budget. When the budget is
 * spent, `reclaim` drops pieces that no reader needs soon.
 */
export class PieceBufferPool {
  readonly limitBytes: number;
  #inUseBytes = 0;
  #spareBytes = 0;
  readonly #spare = new Map<number, Uint8Array<ArrayBuffer>[]>();
  readonly #waiting = new Set<TransferBuffers>();
  #reclaim: Reclaim = () => false;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  /** Bytes in buffers that were taken and not returned. */
  get inUseBytes(): number {
    return this.#inUseBytes;
  }

  setReclaim(reclaim: Reclaim): void {
    this.#reclaim = reclaim;
  }

  /** The buffers of one transfer. `freed` is called when a failed `take` would succeed now. */
  forTransfer(freed: () => void): TransferBuffers {
    return new TransferBuffers(this, freed, this.#waiting);
  }

  /** Takes a buffer within the budget, or beyond it if `isGuaranteed` and the disk makes progress. Undefined if none is available now. */
  take(length: number, isGuaranteed: boolean): Uint8Array<ArrayBuffer> | undefined {
    return this.#makeRoom(length, isGuaranteed) ? this.takeAnyway(length) : undefined;
  }

  /** Takes a buffer regardless of the budget. */
  takeAnyway(length: number): Uint8Array<ArrayBuffer> {
    this.#inUseBytes += length;
    const spare = this.#spare.get(length)?.pop();
    if (spare !== undefined) {
      this.#spareBytes -= length;
      return spare;
    }
    if (this.#isOverLimit(0)) this.#dropSpares();
    return new Uint8Array(length);
  }

  /**
   * Returns a buffer to the pool. The caller keeps no reference to it. The pool keeps it for reuse, because new memory costs page
   * faults and the garbage collector frees it late: buffers in use and spare ones together are limited as those in use are. When a
   * disk has caught up, the whole overdraft is returned at once, and taken again a moment later.
   */
  give(buffer: Uint8Array<ArrayBuffer>): void {
    this.forget(buffer.length);
    // The last piece of all transfers was returned: an idle engine keeps no memory.
    if (this.#inUseBytes === 0) {
      this.#dropSpares();
      return;
    }
    const spares = this.#spare.get(buffer.length) ?? [];
    // Spare buffers of other lengths are of former transfers.
    if (spares.length === 0 && this.#isOverLimit(buffer.length)) this.#dropSpares();
    if (this.#isOverLimit(buffer.length)) return;
    spares.push(buffer);
    this.#spare.set(buffer.length, spares);
    this.#spareBytes += buffer.length;
  }

  #isOverLimit(moreBytes: number): boolean {
    return this.#inUseBytes + this.#spareBytes + moreBytes > this.limitBytes + MAX_OVERDRAFT_BYTES;
  }

  /** Removes a buffer from the budget without reusing it: other code may still refer to its memory. */
  forget(length: number): void {
    this.#inUseBytes -= length;
    assert(this.#inUseBytes >= 0, "more piece buffers were returned than taken");
  }

  /** Memory became free or evictable: notifies transfers whose failed `take` would succeed now. */
  changed(): void {
    for (const view of this.#waiting) {
      if (!this.#makeRoom(view.missedBytes, view.isGuaranteed)) continue;
      this.#waiting.delete(view);
      view.freed();
    }
  }

  /** Makes room for `length` bytes, by reclaiming memory if necessary. Returns false if it cannot. */
  #makeRoom(length: number, isGuaranteed: boolean): boolean {
    const missing = () => this.#inUseBytes + length - this.limitBytes;
    if (missing() > 0) this.#reclaim(missing(), false);
    if (missing() <= 0) return true;
    if (!isGuaranteed) return false;
    const overdraft = Math.max(MAX_OVERDRAFT_BYTES, GUARANTEED_PIECES * length);
    if (missing() <= overdraft) return true;
    const isDiskAtWork = this.#reclaim(missing() - overdraft, true);
    return missing() <= overdraft || !isDiskAtWork;
  }

  #dropSpares(): void {
    this.#spare.clear();
    this.#spareBytes = 0;
  }
}

/** The piece buffers of one transfer: counts the buffers that its swarm fills, and queues a failed `take`. */
export class TransferBuffers implements PieceBuffers {
  readonly #pool: PieceBufferPool;
  readonly #waiting: Set<TransferBuffers>;
  readonly freed: () => void;
  /** The length of the last `take` that failed. */
  missedBytes = 0;
  #filling = 0;

  constructor(pool: PieceBufferPool, freed: () => void, waiting: Set<TransferBuffers>) {
    this.#pool = pool;
    this.freed = freed;
    this.#waiting = waiting;
  }

  /** True if the next `take` is for a guaranteed piece. */
  get isGuaranteed(): boolean {
    return this.#filling < GUARANTEED_PIECES;
  }

  take(length: number): Uint8Array<ArrayBuffer> | undefined {
    const buffer = this.#pool.take(length, this.isGuaranteed);
    if (buffer === undefined) {
      this.missedBytes = length;
      this.#waiting.add(this);
    } else {
      this.#filling++;
    }
    return buffer;
  }

  give(buffer: Uint8Array<ArrayBuffer>): void {
    this.#filling--;
    this.#pool.give(buffer);
    this.#pool.changed();
    this.#wakeIfGuaranteed();
  }

  /** A filled buffer now belongs to the store; it still counts against the budget. */
  filled(): void {
    this.#filling--;
    this.#wakeIfGuaranteed();
  }

  /** With fewer pieces being filled, a guaranteed `take` succeeds again. */
  #wakeIfGuaranteed(): void {
    if (this.isGuaranteed && this.#waiting.delete(this)) this.freed();
  }

  /** Stops waiting: the transfer has ended. */
  close(): void {
    this.#waiting.delete(this);
  }
}
