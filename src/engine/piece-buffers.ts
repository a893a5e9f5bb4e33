import { assert } from "../base/assert.ts";
import type { PieceBuffers } from "../swarm/contract.ts";

/** Even with the budget spent a transfer may fill so many pieces, so that no transfer can starve another for ever. */
const GUARANTEED_PIECES = 2;
/** Unused buffers kept for the next `take`: warm memory costs no page faults. */
const MAX_SPARE_BYTES = 4 * 1024 * 1024;

/** So far beyond the budget a transfer may go for its two pieces before it waits for the disk, or before what the disk is
 * too slow for is given up. */
const MAX_OVERDRAFT_BYTES = 8 * 1024 * 1024;

/**
 * Frees memory that others hold: gives buffers back until `bytes` of the budget are free, if it can. Where it `mustFree`
 * it also gives up what the disk was too slow for, and says whether more comes free by itself, as the disk writes.
 */
export type Reclaim = (bytes: number, mustFree: boolean) => boolean;

/**
 * The memory of all pieces of all transfers, both those being filled and those kept to be read. There is one budget;
 * when it is spent, `reclaim` is asked to give up pieces that nobody needs soon.
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

  /** Bytes in buffers that were taken and not given back. */
  get inUseBytes(): number {
    return this.#inUseBytes;
  }

  setReclaim(reclaim: Reclaim): void {
    this.#reclaim = reclaim;
  }

  /** The view of one transfer. `freed` is called when a `take` that failed would succeed now. */
  forTransfer(freed: () => void): TransferBuffers {
    return new TransferBuffers(this, freed, this.#waiting);
  }

  /** A buffer within the budget; where it `isGuaranteed`, beyond it as long as the disk gets on. Undefined: not now. */
  take(length: number, isGuaranteed: boolean): Uint8Array<ArrayBuffer> | undefined {
    return this.#makeRoom(length, isGuaranteed) ? this.takeAnyway(length) : undefined;
  }

  /** A buffer, whatever the budget says. */
  takeAnyway(length: number): Uint8Array<ArrayBuffer> {
    this.#inUseBytes += length;
    const spare = this.#spare.get(length)?.pop();
    if (spare === undefined) return new Uint8Array(length);
    this.#spareBytes -= length;
    return spare;
  }

  /** Takes back a buffer that nobody refers to any more. */
  give(buffer: Uint8Array<ArrayBuffer>): void {
    this.forget(buffer.length);
    if (this.#spareBytes + buffer.length > MAX_SPARE_BYTES) this.#dropSpares();
    if (buffer.length > MAX_SPARE_BYTES) return;
    const list = this.#spare.get(buffer.length);
    if (list) list.push(buffer);
    else this.#spare.set(buffer.length, [buffer]);
    this.#spareBytes += buffer.length;
  }

  /** Takes a buffer out of the account whose memory others may still refer to: it is never used again. */
  forget(length: number): void {
    this.#inUseBytes -= length;
    assert(this.#inUseBytes >= 0, "more piece buffers were given back than taken");
  }

  /** Something became free or reclaimable: wakes those whose `take` failed, where it would succeed now. */
  changed(): void {
    for (const view of this.#waiting) {
      if (!this.#makeRoom(view.missedBytes, view.isGuaranteed)) continue;
      this.#waiting.delete(view);
      view.freed();
    }
  }

  /** Whether there is room for `length` bytes, others' having been given up where it had to be. */
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

/** The piece buffers of one transfer: counts what its swarm fills, and remembers that it waits. */
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

  /** Whether the next `take` is one of the pieces that may always be filled. */
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

  /** A buffer was filled and now belongs to the store; it still counts towards the budget. */
  filled(): void {
    this.#filling--;
    this.#wakeIfGuaranteed();
  }

  /** With fewer pieces being filled a `take` succeeds again, whatever others hold. */
  #wakeIfGuaranteed(): void {
    if (this.isGuaranteed && this.#waiting.delete(this)) this.freed();
  }

  /** The transfer is over. */
  close(): void {
    this.#waiting.delete(this);
  }
}
