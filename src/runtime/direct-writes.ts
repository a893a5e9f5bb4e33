import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/** Offset, length and memory address of a direct write are multiples of this: the largest block size of common disks. */
const BLOCK_BYTES = 4096;
/** Shorter writes go through the page cache: a disk is slow for many small writes. */
const MIN_BYTES = 64 * 1024;
/** Size of the aligned buffer; longer copies are split. */
const BUFFER_BYTES = 1024 * 1024;
/** Shorter memory is copied: Bun's buffers begin at a page boundary only from this length on. */
const ALIGNED_BYTES = 256 * 1024;
/** A disk that writes fewer bytes per millisecond (20 MB/s) is slow. */
const SLOW_BYTES_PER_MS = 20_000;
/** Time that direct writes may take beyond that rate before the page cache takes the next writes: a disk may pause now and then. */
const SLOW_MS = 500;
/** Number of buffered writes after a slow disk was found. */
const BUFFERED_AFTER_SLOW = 64;

/** True once a direct write from ordinary memory was refused: this runtime does not align its buffers. */
let needsAlignedCopy = false;
/** Memory of WebAssembly starts at a page boundary on every runtime. Made on first use. */
let aligned: Uint8Array | undefined;
let isAlignedInUse = false;

/** The disk of files with direct writes. Whether it is slow is known from the writes to all of them. */
export class DirectDisk {
  readonly #now: () => number;
  /** Time beyond `SLOW_BYTES_PER_MS` that recent direct writes took. */
  #lateMs = 0;
  /** Number of writes that the page cache takes before a direct write is tried again. */
  #bufferedLeft = 0;

  /** `now` returns milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** `path` names an existing file. It is opened on the first suitable write. */
  file(path: string): DirectWrites {
    return new DirectWrites(path, this);
  }

  /** Runs a direct write of `bytes` and measures it. Returns false, and does not run it, if the page cache should take it. */
  async write(bytes: number, run: () => Promise<boolean>): Promise<boolean> {
    if (this.#bufferedLeft > 0) {
      this.#bufferedLeft--;
      return false;
    }
    const began = this.#now();
    const isWritten = await run();
    const expectedMs = bytes / SLOW_BYTES_PER_MS;
    this.#lateMs = Math.max(0, this.#lateMs + this.#now() - began - expectedMs);
    if (this.#lateMs > SLOW_MS) {
      this.#lateMs = 0;
      this.#bufferedLeft = BUFFERED_AFTER_SLOW;
    }
    return isWritten;
  }
}

/**
 * Writes that bypass the page cache (O_DIRECT, Linux). For data that is rarely read again, they cost a tenth of the CPU time of
 * buffered writes and do not evict other files from memory. If the system or the file system has no direct writes, if the disk
 * is slow, or if a write is short or not aligned, `write` returns false and the caller writes through the page cache.
 */
class DirectWrites {
  readonly #path: string;
  readonly #disk: DirectDisk;
  #opening: Promise<FileHandle | undefined> | undefined;
  #isRefused = constants.O_DIRECT === undefined;

  constructor(path: string, disk: DirectDisk) {
    this.#path = path;
    this.#disk = disk;
  }

  /** Writes all of `parts` from offset `at` on, or writes nothing or a part and returns false. Rejects if the disk fails. */
  async write(at: number, parts: readonly Uint8Array[]): Promise<boolean> {
    const length = lengthOf(parts);
    if (this.#isRefused || length < MIN_BYTES) return false;
    if (at % BLOCK_BYTES !== 0 || length % BLOCK_BYTES !== 0) return false;
    this.#opening ??= open(this.#path, constants.O_WRONLY | constants.O_DIRECT).catch(() => undefined);
    const handle = await this.#opening;
    if (handle === undefined) {
      this.#isRefused = true;
      return false;
    }
    try {
      return await this.#disk.write(length, () => writeAligned(handle, at, parts));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EINVAL") throw error;
      this.#isRefused = true;
      return false;
    }
  }

  async close(): Promise<void> {
    await (await this.#opening)?.close();
  }
}

/**
 * Writes `parts` one after another from offset `at` on, with one system call if possible. A short write is repeated part by part; a
 * full disk rejects then.
 */
export async function writeFully(
  handle: FileHandle,
  at: number,
  parts: readonly Uint8Array[],
): Promise<void> {
  if (parts.length > 1) {
    const { bytesWritten } = await handle.writev(parts, at);
    if (bytesWritten === lengthOf(parts)) return;
  }
  let to = at;
  for (const part of parts) {
    for (let put = 0; put < part.length; ) {
      const { bytesWritten } = await handle.write(part, put, part.length - put, to + put);
      put += bytesWritten;
    }
    to += part.length;
  }
}

/** Writes from the given memory if it is aligned, else from an aligned copy. Returns false if the copy is in use. */
async function writeAligned(handle: FileHandle, at: number, parts: readonly Uint8Array[]): Promise<boolean> {
  const isLong = parts.every(({ length }) => length >= ALIGNED_BYTES && length % BLOCK_BYTES === 0);
  if (isLong && !needsAlignedCopy) {
    try {
      await writeFully(handle, at, parts);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EINVAL") throw error;
      needsAlignedCopy = true;
    }
  }
  if (isAlignedInUse) return false;
  aligned ??= new Uint8Array(new WebAssembly.Memory({ initial: BUFFER_BYTES / 65_536 }).buffer);
  isAlignedInUse = true;
  try {
    await writeCopies(handle, at, parts, aligned);
    return true;
  } finally {
    isAlignedInUse = false;
  }
}

/** Copies `parts` to `buffer` and writes it each time it is full, and at the end. */
async function writeCopies(
  handle: FileHandle,
  at: number,
  parts: readonly Uint8Array[],
  buffer: Uint8Array,
): Promise<void> {
  let to = at;
  let filled = 0;
  const flush = async () => {
    await writeFully(handle, to, [buffer.subarray(0, filled)]);
    to += filled;
    filled = 0;
  };
  for (const part of parts) {
    for (let from = 0; from < part.length; ) {
      const copied = part.subarray(from, from + buffer.length - filled);
      buffer.set(copied, filled);
      filled += copied.length;
      from += copied.length;
      if (filled === buffer.length) await flush();
    }
  }
  if (filled > 0) await flush();
}

function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0);
}
