import { assert } from "../base/assert.ts";
import type { ConnectionId } from "./contract.ts";
import { BLOCK_BYTES } from "./limits.ts";
import type { BlockSender } from "./smart-ban.ts";

/** A piece on its way: its buffer, and for each block who was asked, when it is due, and who sent it. */
export class PartialPiece {
  readonly index: number;
  readonly length: number;
  readonly buffer: Uint8Array<ArrayBuffer>;
  readonly blockCount: number;
  /** How many peers have been asked for a block and still owe it. */
  readonly askers: Uint8Array;
  /** 1 where the block lies verified-to-be in the buffer. */
  readonly done: Uint8Array;
  /** 1 while a peer's decoder writes straight into the buffer; there is never more than one such writer a block. */
  readonly writing: Uint8Array;
  /** Who was asked last, and when its answer is expected at the latest (milliseconds). */
  readonly askedOf: Int32Array;
  readonly dueAt: Float64Array;
  readonly senders: (BlockSender | undefined)[];
  /** Blocks that nobody owes and that are not here. */
  free: number;
  doneCount = 0;
  /** Who began it: others leave it alone while they can work elsewhere, so that few have a hand in each piece. */
  owner: ConnectionId | undefined;
  /** While set, only this peer may be asked: the piece failed before, and blame must be certain. */
  onlyFor: ConnectionId | undefined;
  /** Since when no reader wants the piece; undefined while one does. */
  unwantedSince: number | undefined;
  /** All pieces with free blocks; this one keeps itself in it while it has any. */
  readonly #open: Set<PartialPiece>;
  /** No free block lies before this one. */
  #cursor = 0;

  constructor(index: number, length: number, buffer: Uint8Array<ArrayBuffer>, open: Set<PartialPiece>) {
    this.#open = open;
    open.add(this);
    this.index = index;
    this.length = length;
    this.buffer = buffer;
    this.blockCount = Math.ceil(length / BLOCK_BYTES);
    this.askers = new Uint8Array(this.blockCount);
    this.done = new Uint8Array(this.blockCount);
    this.writing = new Uint8Array(this.blockCount);
    this.askedOf = new Int32Array(this.blockCount);
    this.dueAt = new Float64Array(this.blockCount);
    this.senders = new Array(this.blockCount).fill(undefined);
    this.free = this.blockCount;
  }

  get isComplete(): boolean {
    return this.doneCount === this.blockCount;
  }

  /** The length of a block: the last one of the content may be shorter. */
  blockLength(block: number): number {
    return Math.min(BLOCK_BYTES, this.length - block * BLOCK_BYTES);
  }

  /** The first free block, or -1. */
  firstFree(): number {
    if (this.free === 0) return -1;
    while (this.askers[this.#cursor] !== 0 || this.done[this.#cursor] !== 0) {
      assert(++this.#cursor < this.blockCount, "a piece counts free blocks that it does not have");
    }
    return this.#cursor;
  }

  /** Notes that `connection` was asked for `block`, and when it should be here. */
  ask(block: number, connection: ConnectionId, dueAt: number): void {
    if (this.askers[block] === 0 && this.done[block] === 0) this.#taken();
    this.askers[block]!++;
    this.askedOf[block] = connection;
    this.dueAt[block] = dueAt;
  }

  /** One peer fewer owes `block`. */
  release(block: number): void {
    this.askers[block]!--;
    if (this.askers[block] !== 0 || this.done[block] !== 0) return;
    if (this.free++ === 0) this.#open.add(this);
    if (block < this.#cursor) this.#cursor = block;
  }

  /** The block is here, sent by `sender`. */
  finish(block: number, sender: BlockSender): void {
    if (this.askers[block] === 0 && this.done[block] === 0) this.#taken();
    this.done[block] = 1;
    this.doneCount++;
    this.senders[block] = sender;
  }

  /** A liar is found out: its blocks are to be asked again. Returns how many bytes that throws away. */
  disown(liar: ConnectionId): number {
    let bytes = 0;
    for (let block = 0; block < this.blockCount; block++) {
      if (this.done[block] === 0 || this.senders[block]?.connection !== liar) continue;
      this.done[block] = 0;
      this.senders[block] = undefined;
      this.doneCount--;
      bytes += this.blockLength(block);
      if (this.askers[block] === 0 && this.free++ === 0) this.#open.add(this);
      if (block < this.#cursor) this.#cursor = block;
    }
    return bytes;
  }

  /** The piece failed its hash: everything is to be asked again. Late answers still count as owed. */
  restart(): void {
    this.done.fill(0);
    this.writing.fill(0);
    this.senders.fill(undefined);
    this.doneCount = 0;
    this.#cursor = 0;
    this.free = 0;
    for (let block = 0; block < this.blockCount; block++) if (this.askers[block] === 0) this.free++;
    if (this.free > 0) this.#open.add(this);
  }

  #taken(): void {
    if (--this.free === 0) this.#open.delete(this);
  }
}
