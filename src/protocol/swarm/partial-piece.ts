import { assert } from "../../base/assert.ts";
import type { ConnectionId } from "./contract.ts";
import { BLOCK_BYTES } from "./limits.ts";
import type { BlockSender } from "./smart-ban.ts";

/** A started piece: its buffer, and for each block its pending requests, when it is due, and its sender. */
export class PartialPiece {
  readonly index: number;
  readonly length: number;
  readonly buffer: Uint8Array<ArrayBuffer>;
  readonly blockCount: number;
  /** By block: the number of pending requests. */
  readonly requesters: Uint8Array;
  /** By block: 1 if it has arrived. */
  readonly done: Uint8Array;
  /** By block: 1 while a peer's decoder writes it to the buffer; at most one peer does so. */
  readonly writing: Uint8Array;
  /** By block: the connection of the latest request, and when its answer is late (milliseconds). */
  readonly requestedFrom: Int32Array;
  readonly dueAt: Float64Array;
  readonly senders: (BlockSender | undefined)[];
  /** Number of blocks that have neither arrived nor a pending request. */
  free: number;
  doneCount = 0;
  /** The peer that started the piece: others work on it only if they have nothing else to do, so that it has few senders. */
  owner: ConnectionId | undefined;
  /** If set, only this peer is asked: the piece failed before, so a failure must prove who is at fault. */
  onlyFor: ConnectionId | undefined;
  /** When readers stopped wanting the piece; undefined while a reader wants it. */
  unwantedSince: number | undefined;
  /** The set of all pieces with free blocks, which this piece maintains. */
  readonly #open: Set<PartialPiece>;
  /** No block before this one is free. */
  #cursor = 0;

  constructor(index: number, length: number, buffer: Uint8Array<ArrayBuffer>, open: Set<PartialPiece>) {
    this.#open = open;
    open.add(this);
    this.index = index;
    this.length = length;
    this.buffer = buffer;
    this.blockCount = Math.ceil(length / BLOCK_BYTES);
    this.requesters = new Uint8Array(this.blockCount);
    this.done = new Uint8Array(this.blockCount);
    this.writing = new Uint8Array(this.blockCount);
    this.requestedFrom = new Int32Array(this.blockCount);
    this.dueAt = new Float64Array(this.blockCount);
    this.senders = new Array(this.blockCount).fill(undefined);
    this.free = this.blockCount;
  }

  get isComplete(): boolean {
    return this.doneCount === this.blockCount;
  }

  /** Returns the length of a block in bytes: the last block of the piece may be shorter. */
  blockLength(block: number): number {
    return Math.min(BLOCK_BYTES, this.length - block * BLOCK_BYTES);
  }

  /** Returns the first free block, or -1. */
  firstFree(): number {
    if (this.free === 0) return -1;
    while (this.requesters[this.#cursor] !== 0 || this.done[this.#cursor] !== 0) {
      assert(++this.#cursor < this.blockCount, "a piece counts free blocks that it does not have");
    }
    return this.#cursor;
  }

  /** `block` has been requested from `connection` and is late after `dueAt`. */
  request(block: number, connection: ConnectionId, dueAt: number): void {
    if (this.requesters[block] === 0 && this.done[block] === 0) this.#takeFree();
    this.requesters[block]!++;
    this.requestedFrom[block] = connection;
    this.dueAt[block] = dueAt;
  }

  /** One request for `block` is no longer pending. */
  release(block: number): void {
    this.requesters[block]!--;
    if (this.requesters[block] !== 0 || this.done[block] !== 0) return;
    if (this.free++ === 0) this.#open.add(this);
    if (block < this.#cursor) this.#cursor = block;
  }

  /** The block has arrived from `sender`. */
  finish(block: number, sender: BlockSender): void {
    if (this.requesters[block] === 0 && this.done[block] === 0) this.#takeFree();
    this.done[block] = 1;
    this.doneCount++;
    this.senders[block] = sender;
  }

  /** Discards the blocks of a banned peer. Returns how many bytes were discarded. */
  discardFrom(sender: ConnectionId): number {
    let bytes = 0;
    for (let block = 0; block < this.blockCount; block++) {
      if (this.done[block] === 0 || this.senders[block]?.connection !== sender) continue;
      this.done[block] = 0;
      this.senders[block] = undefined;
      this.doneCount--;
      bytes += this.blockLength(block);
      if (this.requesters[block] === 0 && this.free++ === 0) this.#open.add(this);
      if (block < this.#cursor) this.#cursor = block;
    }
    return bytes;
  }

  /** The piece failed verification: discards all blocks. Pending requests stay pending. */
  restart(): void {
    this.done.fill(0);
    this.writing.fill(0);
    this.senders.fill(undefined);
    this.doneCount = 0;
    this.#cursor = 0;
    this.free = 0;
    for (let block = 0; block < this.blockCount; block++) if (this.requesters[block] === 0) this.free++;
    if (this.free > 0) this.#open.add(this);
  }

  #takeFree(): void {
    if (--this.free === 0) this.#open.delete(this);
  }
}
