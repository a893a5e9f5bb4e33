import type { AbortSignalLike, ReadOptions } from "../../base/byte-source.ts";
import { SluiceError } from "../../base/errors.ts";
import { type ByteRange, rangeLength } from "../../base/range.ts";
import { after } from "../../base/time.ts";
import type { ByteReader, ByteSource } from "../contract.ts";
import { type Deferred, deferred } from "../deferred.ts";
import { readerStream } from "../reader-stream.ts";
import { BLOCK_BYTES, RangeLane } from "./range-lane.ts";
import type { WebClient } from "./web-client.ts";
import type { WebContent } from "./web-content.ts";

/** 8 MiB: what several players of one film share, and more than all read-ahead together. */
const MAX_BLOCKS = 32;
/** Connections to one server for one file; browsers make six for everything. */
const MAX_LANES = 4;
/** A lane that goes on reads ahead, more with each block, but never more than its share of the memory. */
const MAX_AHEAD_BLOCKS = 6;
/** It is quicker to read over so much than to connect anew. */
const SKIP_BLOCKS = 4;
/** A connection that nobody has read from for so long is closed. */
const LINGER_MS = 10_000;

/** A file of a web server as random access: read by ranges, a few connections at a time, the latest blocks kept. */
export class RangeFile {
  readonly #client: WebClient;
  readonly #content: WebContent;
  /** Least recently used first. */
  readonly #blocks = new Map<number, Uint8Array<ArrayBuffer>>();
  readonly #waiting = new Map<number, Deferred<Uint8Array<ArrayBuffer>>>();
  readonly #seen = new Set<number>();
  #lanes: RangeLane[] = [];
  #rested = deferred<void>();
  #cancelSweep: (() => void) | undefined;
  #closed: { readonly reason: unknown } | undefined;

  constructor(client: WebClient, content: WebContent) {
    this.#client = client;
    this.#content = content;
  }

  /** Share of the file that has been fetched at some time, 0 to 100. */
  get progress(): number {
    return (100 * this.#seen.size) / Math.max(1, Math.ceil(this.#content.size / BLOCK_BYTES));
  }

  source(): ByteSource {
    const { size } = this.#content;
    const reader = (range: ByteRange, options: ReadOptions = {}) => {
      checkRange(range, size);
      return new BlockReader((block, ahead, signal) => this.#block(block, ahead, signal), range, options);
    };
    return {
      size,
      read: async (range, options = {}) => {
        checkRange(range, size);
        const bytes = new Uint8Array(rangeLength(range));
        const last = Math.ceil(range.end / BLOCK_BYTES) - 1;
        for (let at = range.start; at < range.end; ) {
          const block = Math.floor(at / BLOCK_BYTES);
          const held = await this.#block(block, last - block, options.signal);
          at += copyPart(held, at - block * BLOCK_BYTES, bytes, at - range.start);
        }
        return bytes;
      },
      reader,
      open: (range, options) => readerStream(reader(range, options)),
    };
  }

  /** Ends all connections; who waits, and who reads later, hears the reason. */
  close(reason: unknown): void {
    this.#closed = { reason };
    this.#cancelSweep?.();
    for (const lane of this.#lanes) lane.close();
    this.#lanes = [];
    this.#blocks.clear();
    this.#rested.resolve();
    for (const waiting of this.#waiting.values()) waiting.reject(reason);
    this.#waiting.clear();
  }

  /** One block: at once where it is held. */
  async #block(
    block: number,
    aheadBlocks: number,
    signal: AbortSignalLike | undefined,
  ): Promise<Uint8Array<ArrayBuffer>> {
    for (;;) {
      if (this.#closed) throw this.#closed.reason;
      const held = this.#touch(block);
      const lane = this.#laneFor(block, held !== undefined);
      lane?.want(block + 1 + Math.min(aheadBlocks, MAX_AHEAD_BLOCKS));
      if (held) return held;
      if (lane) break;
      // All connections are busy for others: the first that rests is ours.
      await orAbortedLike(this.#rested.promise, signal);
    }
    let waiting = this.#waiting.get(block);
    if (!waiting) {
      waiting = deferred();
      // Whoever waits may have gone before it fails.
      waiting.promise.catch(() => {});
      this.#waiting.set(block, waiting);
    }
    return orAbortedLike(waiting.promise, signal);
  }

  #touch(block: number): Uint8Array<ArrayBuffer> | undefined {
    const bytes = this.#blocks.get(block);
    if (!bytes) return undefined;
    this.#blocks.delete(block);
    this.#blocks.set(block, bytes);
    return bytes;
  }

  /** The connection that brings a block: one that stands shortly before it, else a new one. For a block that is held, only
   * one that reads on from it. */
  #laneFor(block: number, isHeld: boolean): RangeLane | undefined {
    const near = this.#lanes.find(({ next }) => isHeld && next > block && next <= block + MAX_AHEAD_BLOCKS);
    if (near || isHeld) return near;
    const before = this.#lanes.find((lane) => lane.covers(block, SKIP_BLOCKS));
    if (before) return before;
    if (this.#lanes.length >= MAX_LANES) {
      const idle = this.#lanes.filter((lane) => !lane.isBusy).sort((a, b) => a.lastUse - b.lastUse)[0];
      if (!idle) return undefined;
      this.#drop(idle);
    }
    const lane = new RangeLane(this.#client, this.#content, block, {
      arrived: (at, bytes) => this.#arrived(at, bytes),
      rested: () => this.#rest(),
      failed: (failed, reason) => this.#failed(failed, reason),
    });
    this.#lanes.push(lane);
    this.#cancelSweep ??= this.#sweepLater();
    return lane;
  }

  #arrived(block: number, bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#closed) return;
    this.#seen.add(block);
    this.#blocks.delete(block);
    this.#blocks.set(block, bytes);
    for (const oldest of this.#blocks.keys()) {
      if (this.#blocks.size <= MAX_BLOCKS) break;
      this.#blocks.delete(oldest);
    }
    this.#waiting.get(block)?.resolve(bytes);
    this.#waiting.delete(block);
  }

  #rest(): void {
    this.#rested.resolve();
    this.#rested = deferred();
  }

  /** Who waits for what another connection brings goes on waiting. */
  #failed(lane: RangeLane, reason: unknown): void {
    this.#drop(lane);
    for (const [block, waiting] of this.#waiting) {
      if (this.#lanes.some((other) => other.isBusy && other.covers(block, 0))) continue;
      waiting.reject(reason);
      this.#waiting.delete(block);
    }
    this.#rest();
  }

  #drop(lane: RangeLane): void {
    lane.close();
    this.#lanes = this.#lanes.filter((other) => other !== lane);
  }

  #sweepLater(): () => void {
    const { clock } = this.#client;
    return clock.at(after(clock.now(), LINGER_MS), () => {
      const until = clock.now() - LINGER_MS;
      for (const lane of this.#lanes) if (!lane.isBusy && lane.lastUse <= until) this.#drop(lane);
      this.#cancelSweep = this.#lanes.length > 0 ? this.#sweepLater() : undefined;
    });
  }
}

type FindBlock = (
  block: number,
  aheadBlocks: number,
  signal: AbortSignalLike | undefined,
) => Promise<Uint8Array<ArrayBuffer>>;

/** Reads a range from its start to its end; the longer it goes on, the more is read ahead. */
class BlockReader implements ByteReader {
  readonly #find: FindBlock;
  readonly #end: number;
  readonly #maxAhead: number;
  readonly #closed = new AbortController();
  readonly #signal: AbortSignalLike | undefined;
  readonly #onAbort = () => this.close(this.#signal?.reason);
  #position: number;
  #ahead = 1;

  constructor(find: FindBlock, range: ByteRange, { signal, readAheadBytes }: ReadOptions) {
    this.#find = find;
    this.#position = range.start;
    this.#end = range.end;
    this.#maxAhead =
      readAheadBytes === undefined ? MAX_AHEAD_BLOCKS : Math.floor(readAheadBytes / BLOCK_BYTES);
    this.#signal = signal;
    if (signal?.aborted) this.#onAbort();
    else signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  async read(into: Uint8Array): Promise<number> {
    if (this.#position >= this.#end || into.length === 0) return 0;
    if (this.#closed.signal.aborted) throw this.#closed.signal.reason;
    const block = Math.floor(this.#position / BLOCK_BYTES);
    const bytes = await this.#find(block, Math.min(this.#ahead, this.#maxAhead), this.#closed.signal);
    this.#ahead = Math.min(this.#ahead * 2, MAX_AHEAD_BLOCKS);
    const from = this.#position - block * BLOCK_BYTES;
    const room = into.subarray(0, this.#end - this.#position);
    const length = copyPart(bytes, from, room, 0);
    this.#position += length;
    if (this.#position >= this.#end) this.close();
    return length;
  }

  close(reason: unknown = new SluiceError("cancelled", "the reader was closed")): void {
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#closed.abort(reason);
  }
}

/** Copies as much of a block from `from` on as fits; returns how much. */
function copyPart(block: Uint8Array, from: number, into: Uint8Array, at: number): number {
  const part = block.subarray(from, from + into.length - at);
  into.set(part, at);
  return part.length;
}

function checkRange({ start, end }: ByteRange, size: number): void {
  if (start >= 0 && start <= end && end <= size) return;
  throw new RangeError(`expected a range within 0–${size}, got ${start}–${end}`);
}

function orAbortedLike<T>(promise: Promise<T>, signal: AbortSignalLike | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise<T>((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const aborted = () => reject(signal.reason);
    signal.addEventListener("abort", aborted, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", aborted));
  });
}
