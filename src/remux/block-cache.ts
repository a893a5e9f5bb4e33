import type { AbortSignalLike, RandomAccess } from "../base/byte-source.ts";

/** Small enough that reads at segment edges waste little, large enough that each read justifies its overhead. */
const BLOCK_BYTES = 64 * 1024;

interface Block {
  /** The bytes; undefined until they arrive. */
  bytes: Uint8Array | undefined;
  /** Resolves when the read ends, successful or not; undefined afterwards. */
  arriving: Promise<void> | undefined;
}

/**
 * An LRU cache of file blocks. Demultiplexers read a few bytes at a time; the cache combines these reads into few large
 * ones: each run of missing blocks is one read. Holds at most `limitBytes`, plus the reads in progress.
 */
export class BlockCache {
  readonly size: number;
  /** The uncached source, for callers that know exactly which bytes they need. */
  readonly source: RandomAccess;
  readonly #limit: number;
  /** By block number, least recently used first. */
  readonly #blocks = new Map<number, Block>();

  constructor(source: RandomAccess, limitBytes = 8 * 1024 * 1024) {
    this.size = source.size;
    this.source = source;
    this.#limit = Math.max(4, Math.floor(limitBytes / BLOCK_BYTES));
  }

  /**
   * Returns the bytes `[start, end)`: directly if all of them are cached, else as a promise. The memory can be shared with the
   * cache, so the caller must not modify it. Rejects with the error of the source, or with the reason of `signal`.
   */
  read(start: number, end: number, signal?: AbortSignalLike): Uint8Array | Promise<Uint8Array> {
    return this.#cached(start, end) ?? this.#fetch(start, end, signal);
  }

  #cached(start: number, end: number): Uint8Array | undefined {
    const first = Math.floor(start / BLOCK_BYTES);
    const last = Math.floor((end - 1) / BLOCK_BYTES);
    if (first === last) {
      const bytes = this.#markUsed(first);
      return bytes?.subarray(start - first * BLOCK_BYTES, end - first * BLOCK_BYTES);
    }
    for (let at = first; at <= last; at++) if (!this.#blocks.get(at)?.bytes) return undefined;
    const joined = new Uint8Array(end - start);
    for (let at = first; at <= last; at++) this.#copy(at, this.#markUsed(at)!, joined, start);
    return joined;
  }

  async #fetch(start: number, end: number, signal?: AbortSignalLike): Promise<Uint8Array> {
    const first = Math.floor(start / BLOCK_BYTES);
    const last = Math.floor((end - 1) / BLOCK_BYTES);
    const joined = new Uint8Array(end - start);
    const waiting: Promise<void>[] = [];
    for (let at = first; at <= last; at++) {
      const block = this.#blocks.get(at);
      if (block?.bytes) {
        this.#copy(at, this.#markUsed(at)!, joined, start);
        continue;
      }
      if (block?.arriving) {
        waiting.push(this.#join(at, block, joined, start, signal));
        continue;
      }
      let runEnd = at + 1;
      while (runEnd <= last && !this.#blocks.has(runEnd)) runEnd++;
      waiting.push(this.#load(at, runEnd, joined, start, signal));
      at = runEnd - 1;
    }
    await Promise.all(waiting);
    return joined;
  }

  /** Reads the blocks `[from, to)` in one read. */
  async #load(from: number, to: number, joined: Uint8Array, start: number, signal?: AbortSignalLike) {
    const range = { start: from * BLOCK_BYTES, end: Math.min(to * BLOCK_BYTES, this.size) };
    const reading = this.source.read(range, signal ? { signal } : {});
    // If this read fails, other readers that wait for these blocks find them missing and read them again.
    const arriving = reading.then(noResult, noResult);
    for (let at = from; at < to; at++) this.#blocks.set(at, { bytes: undefined, arriving });
    try {
      const bytes = await reading;
      for (let at = from; at < to; at++) {
        const offset = (at - from) * BLOCK_BYTES;
        const part = bytes.subarray(offset, Math.min(offset + BLOCK_BYTES, bytes.length));
        this.#copy(at, part, joined, start);
        // Runs are copied: a view of one block would keep the whole run in memory.
        this.#blocks.set(at, { bytes: to - from === 1 ? part : part.slice(), arriving: undefined });
      }
      this.#evict();
    } catch (error) {
      for (let at = from; at < to; at++) this.#blocks.delete(at);
      throw error;
    }
  }

  /** Waits for a block that another call is reading; reads it again if that call fails. */
  async #join(at: number, block: Block, joined: Uint8Array, start: number, signal?: AbortSignalLike) {
    await block.arriving;
    const end = Math.min((at + 1) * BLOCK_BYTES, this.size, start + joined.length);
    const bytes = await this.read(Math.max(start, at * BLOCK_BYTES), end, signal);
    joined.set(bytes, Math.max(0, at * BLOCK_BYTES - start));
  }

  #markUsed(at: number): Uint8Array | undefined {
    const block = this.#blocks.get(at);
    if (!block?.bytes) return undefined;
    this.#blocks.delete(at);
    this.#blocks.set(at, block);
    return block.bytes;
  }

  #copy(at: number, bytes: Uint8Array, joined: Uint8Array, start: number): void {
    const blockStart = at * BLOCK_BYTES;
    const from = Math.max(start, blockStart);
    const to = Math.min(start + joined.length, blockStart + bytes.length);
    if (from < to) joined.set(bytes.subarray(from - blockStart, to - blockStart), from - start);
  }

  #evict(): void {
    let excess = this.#blocks.size - this.#limit;
    for (const [at, block] of this.#blocks) {
      if (excess-- <= 0) break;
      if (block.bytes) this.#blocks.delete(at);
    }
  }
}

function noResult(): void {}
