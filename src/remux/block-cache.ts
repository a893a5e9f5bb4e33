import type { AbortSignalLike, RandomAccess } from "../base/byte-source.ts";

/** Small enough that the edges of a segment waste little, large enough that a read is worth its promise. */
const BLOCK_BYTES = 64 * 1024;

interface Block {
  /** The bytes, once they are here. */
  bytes: Uint8Array | undefined;
  /** Resolves when they are; undefined afterwards. */
  arriving: Promise<void> | undefined;
}

/**
 * The most recently read blocks of a file. Demultiplexers read a few bytes at a time; this turns their reads into few
 * and larger ones, each run of missing blocks into one. Holds at most `limitBytes` (and what is being read).
 */
export class BlockCache {
  readonly size: number;
  /** What stands behind it, for those who know exactly what they want. */
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
   * Bytes `start` to `end`: at once where all of them are held, else a promise. The memory may be shared: it is for
   * reading only. Rejects with what the source rejects with, or with the reason of `signal`.
   */
  read(start: number, end: number, signal?: AbortSignalLike): Uint8Array | Promise<Uint8Array> {
    return this.#held(start, end) ?? this.#fetch(start, end, signal);
  }

  #held(start: number, end: number): Uint8Array | undefined {
    const first = Math.floor(start / BLOCK_BYTES);
    const last = Math.floor((end - 1) / BLOCK_BYTES);
    if (first === last) {
      const bytes = this.#touch(first);
      return bytes?.subarray(start - first * BLOCK_BYTES, end - first * BLOCK_BYTES);
    }
    for (let at = first; at <= last; at++) if (!this.#blocks.get(at)?.bytes) return undefined;
    const joined = new Uint8Array(end - start);
    for (let at = first; at <= last; at++) this.#copy(at, this.#touch(at)!, joined, start);
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
        this.#copy(at, this.#touch(at)!, joined, start);
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

  /** Reads blocks `from` to `to` in one piece. */
  async #load(from: number, to: number, joined: Uint8Array, start: number, signal?: AbortSignalLike) {
    const range = { start: from * BLOCK_BYTES, end: Math.min(to * BLOCK_BYTES, this.size) };
    const reading = this.source.read(range, signal ? { signal } : {});
    // Whoever else waits for these blocks sees that they did not come, and reads them itself.
    const arriving = reading.then(noResult, noResult);
    for (let at = from; at < to; at++) this.#blocks.set(at, { bytes: undefined, arriving });
    try {
      const bytes = await reading;
      for (let at = from; at < to; at++) {
        const offset = (at - from) * BLOCK_BYTES;
        const part = bytes.subarray(offset, Math.min(offset + BLOCK_BYTES, bytes.length));
        this.#copy(at, part, joined, start);
        // A copy for runs: a view would keep the whole run in memory for the sake of one block.
        this.#blocks.set(at, { bytes: to - from === 1 ? part : part.slice(), arriving: undefined });
      }
      this.#evict();
    } catch (error) {
      for (let at = from; at < to; at++) this.#blocks.delete(at);
      throw error;
    }
  }

  /** Waits for a block that another reader asked for; reads it itself where that reader gave up. */
  async #join(at: number, block: Block, joined: Uint8Array, start: number, signal?: AbortSignalLike) {
    await block.arriving;
    const end = Math.min((at + 1) * BLOCK_BYTES, this.size, start + joined.length);
    const bytes = await this.read(Math.max(start, at * BLOCK_BYTES), end, signal);
    joined.set(bytes, Math.max(0, at * BLOCK_BYTES - start));
  }

  #touch(at: number): Uint8Array | undefined {
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
