import { onAbort, orAborted } from "../async/abort.ts";
import { type Deferred, deferred } from "../async/deferred.ts";
import type { AbortSignalLike, ByteReader, ReadOptions } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import { type ByteRange, rangeLength } from "../base/range.ts";
import { after } from "../base/time.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import type { ByteSource, WebContent } from "../transfer/contract.ts";
import { readerStream } from "../transfer/reader-stream.ts";
import { BLOCK_BYTES, RangeConnection } from "./range-connection.ts";
import type { WebClient } from "./web-client.ts";

/** 8 MiB, shared by all players of the file, and more than the read-ahead of all connections together. */
const MAX_BLOCKS = 32;
/** Parallel connections per file; browsers use six per host. */
const MAX_CONNECTIONS = 4;
/** The limit of read-ahead, which grows with each block read in sequence. */
const MAX_AHEAD_BLOCKS = 6;
/** Reading and skipping this much is faster than a new connection. */
const SKIP_BLOCKS = 4;
/** Idle connections are closed after this time. */
const IDLE_MS = 10_000;

/** Random access to a file of a web server: range requests over a few connections, with a cache of recent blocks. */
export class RangeFile {
  readonly #client: WebClient;
  readonly #content: WebContent;
  /** Least recently used first. */
  readonly #blocks = new Map<number, Uint8Array<ArrayBuffer>>();
  readonly #waiting = new Map<number, Deferred<Uint8Array<ArrayBuffer>>>();
  readonly #fetched = new Set<number>();
  #connections: RangeConnection[] = [];
  #idle = deferred<void>();
  #cancelSweep: (() => void) | undefined;
  #closed: { readonly reason: unknown } | undefined;

  constructor(client: WebClient, content: WebContent) {
    this.#client = client;
    this.#content = content;
  }

  /** Percentage of the file that has been fetched since it was opened, 0 to 100. */
  get progress(): number {
    return (100 * this.#fetched.size) / Math.max(1, Math.ceil(this.#content.size / BLOCK_BYTES));
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
        const wanted = Math.min(size, range.end + (options.readAheadBytes ?? 0));
        const last = Math.ceil(wanted / BLOCK_BYTES) - 1;
        for (let at = range.start; at < range.end; ) {
          const block = Math.floor(at / BLOCK_BYTES);
          const cached = await this.#block(block, last - block, options.signal);
          at += copyPart(cached, at - block * BLOCK_BYTES, bytes, at - range.start);
        }
        return bytes;
      },
      reader,
      open: (range, options) => readerStream(reader(range, options)),
    };
  }

  /** Closes all connections. Pending and later reads reject with `reason`. */
  close(reason: unknown): void {
    this.#closed = { reason };
    this.#cancelSweep?.();
    for (const connection of this.#connections) connection.close();
    this.#connections = [];
    this.#blocks.clear();
    this.#idle.resolve();
    for (const waiting of this.#waiting.values()) waiting.reject(reason);
    this.#waiting.clear();
  }

  /** Returns a block from the cache or the server, and requests `aheadBlocks` after it. */
  async #block(
    block: number,
    aheadBlocks: number,
    signal: AbortSignalLike | undefined,
  ): Promise<Uint8Array<ArrayBuffer>> {
    for (;;) {
      if (this.#closed) throw this.#closed.reason;
      const cached = this.#touch(block);
      const connection = this.#connectionFor(block, cached !== undefined);
      connection?.request(block + 1 + Math.min(aheadBlocks, MAX_AHEAD_BLOCKS));
      if (cached) return cached;
      if (connection) break;
      // All connections are busy: use the first that becomes idle.
      await orAborted(this.#idle.promise, signal);
    }
    let waiting = this.#waiting.get(block);
    if (!waiting) {
      waiting = deferred();
      // All readers may have left before it fails.
      waiting.promise.catch(() => {});
      this.#waiting.set(block, waiting);
    }
    return orAborted(waiting.promise, signal);
  }

  #touch(block: number): Uint8Array<ArrayBuffer> | undefined {
    const bytes = this.#blocks.get(block);
    if (!bytes) return undefined;
    this.#blocks.delete(block);
    this.#blocks.set(block, bytes);
    return bytes;
  }

  /** Returns the connection for a block: one shortly before it, else a new one; undefined if all are busy. For a cached
   * block, returns a connection only if it reads ahead of that block. */
  #connectionFor(block: number, isCached: boolean): RangeConnection | undefined {
    const near = this.#connections.find(
      ({ next }) => isCached && next > block && next <= block + MAX_AHEAD_BLOCKS,
    );
    if (near || isCached) return near;
    const before = this.#connections.find((connection) => connection.covers(block, SKIP_BLOCKS));
    if (before) return before;
    if (this.#connections.length >= MAX_CONNECTIONS) {
      const idle = this.#connections
        .filter((connection) => !connection.isBusy)
        .sort((a, b) => a.lastUse - b.lastUse)[0];
      if (!idle) return undefined;
      this.#drop(idle);
    }
    const connection = new RangeConnection(this.#client, this.#content, block, {
      arrived: (at, bytes) => this.#arrived(at, bytes),
      idle: () => this.#signalIdle(),
      failed: (failed, reason) => this.#failed(failed, reason),
    });
    this.#connections.push(connection);
    this.#cancelSweep ??= this.#sweepLater();
    return connection;
  }

  #arrived(block: number, bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#closed) return;
    this.#fetched.add(block);
    this.#blocks.delete(block);
    this.#blocks.set(block, bytes);
    trimOldest(this.#blocks, MAX_BLOCKS);
    this.#waiting.get(block)?.resolve(bytes);
    this.#waiting.delete(block);
  }

  #signalIdle(): void {
    this.#idle.resolve();
    this.#idle = deferred();
  }

  /** Rejects the pending blocks that no other connection will fetch. */
  #failed(connection: RangeConnection, reason: unknown): void {
    this.#drop(connection);
    for (const [block, waiting] of this.#waiting) {
      if (this.#connections.some((other) => other.isBusy && other.covers(block, 0))) continue;
      waiting.reject(reason);
      this.#waiting.delete(block);
    }
    this.#signalIdle();
  }

  #drop(connection: RangeConnection): void {
    connection.close();
    this.#connections = this.#connections.filter((other) => other !== connection);
  }

  #sweepLater(): () => void {
    const { clock } = this.#client;
    return clock.at(after(clock.now(), IDLE_MS), () => {
      const until = clock.now() - IDLE_MS;
      for (const connection of this.#connections)
        if (!connection.isBusy && connection.lastUse <= until) this.#drop(connection);
      this.#cancelSweep = this.#connections.length > 0 ? this.#sweepLater() : undefined;
    });
  }
}

type FindBlock = (
  block: number,
  aheadBlocks: number,
  signal: AbortSignalLike | undefined,
) => Promise<Uint8Array<ArrayBuffer>>;

/** Reads a range sequentially; the read-ahead doubles with each block. */
class BlockReader implements ByteReader {
  readonly #find: FindBlock;
  readonly #end: number;
  readonly #closed = new AbortController();
  #release: () => void = () => {};
  #position: number;
  #ahead = 1;

  constructor(find: FindBlock, range: ByteRange, { signal }: ReadOptions) {
    this.#find = find;
    this.#position = range.start;
    this.#end = range.end;
    this.#release = onAbort(signal, () => this.close(signal?.reason));
  }

  async read(into: Uint8Array): Promise<number> {
    if (this.#position >= this.#end || into.length === 0) return 0;
    if (this.#closed.signal.aborted) throw this.#closed.signal.reason;
    const block = Math.floor(this.#position / BLOCK_BYTES);
    const bytes = await this.#find(block, this.#ahead, this.#closed.signal);
    this.#ahead = Math.min(this.#ahead * 2, MAX_AHEAD_BLOCKS);
    const from = this.#position - block * BLOCK_BYTES;
    const target = into.subarray(0, this.#end - this.#position);
    const length = copyPart(bytes, from, target, 0);
    this.#position += length;
    if (this.#position >= this.#end) this.close();
    return length;
  }

  close(reason: unknown = new SluiceError("cancelled", "the reader was closed")): void {
    this.#release();
    this.#closed.abort(reason);
  }
}

/** Copies the bytes of a block from `from` on that fit into `into` at `at`. Returns their count. */
function copyPart(block: Uint8Array, from: number, into: Uint8Array, at: number): number {
  const part = block.subarray(from, from + into.length - at);
  into.set(part, at);
  return part.length;
}

function checkRange({ start, end }: ByteRange, size: number): void {
  if (start >= 0 && start <= end && end <= size) return;
  throw new RangeError(`expected a range within 0–${size}, got ${start}–${end}`);
}
