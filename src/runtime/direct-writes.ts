import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/** Offset, length and memory address of a direct write are multiples of this: the largest block size of common disks. */
const BLOCK_BYTES = 4096;
/** Shorter writes go through the page cache: a disk is slow for many small writes. */
const MIN_BYTES = 64 * 1024;
/** Size of the aligned buffer; longer writes are split. */
const BUFFER_BYTES = 1024 * 1024;
/** A direct write that takes longer shows a slow or busy disk: the page cache takes the next writes. */
const SLOW_MS = 50;
/** Number of buffered writes after a slow one. */
const BUFFERED_AFTER_SLOW = 64;

/** True once a direct write from ordinary memory was refused: this runtime does not align its buffers. */
let needsAlignedCopy = false;
/** Memory of WebAssembly starts at a page boundary on every runtime. Made on first use. */
let aligned: Uint8Array | undefined;
let isAlignedInUse = false;

/**
 * Writes that bypass the page cache (O_DIRECT, Linux). For data that is rarely read again, they cost a tenth of the CPU time of
 * buffered writes and do not evict other files from memory. If the system or the file system has no direct writes, if the disk
 * is slow, or if a write is short or not aligned, `write` returns false and the caller writes through the page cache.
 */
export class DirectWrites {
  readonly #path: string;
  #opening: Promise<FileHandle | undefined> | undefined;
  #isRefused = constants.O_DIRECT === undefined;
  #bufferedLeft = 0;

  /** `path` names an existing file. It is opened on the first suitable write. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Writes all of `bytes` at offset `at`, or writes nothing or a part and returns false. Rejects if the disk fails. */
  async write(at: number, bytes: Uint8Array): Promise<boolean> {
    if (this.#isRefused || bytes.length < MIN_BYTES) return false;
    if (at % BLOCK_BYTES !== 0 || bytes.length % BLOCK_BYTES !== 0) return false;
    if (this.#bufferedLeft > 0) {
      this.#bufferedLeft--;
      return false;
    }
    this.#opening ??= open(this.#path, constants.O_WRONLY | constants.O_DIRECT).catch(() => undefined);
    const handle = await this.#opening;
    if (handle === undefined) {
      this.#isRefused = true;
      return false;
    }
    const began = performance.now();
    try {
      const isWritten = await writeAligned(handle, at, bytes);
      if (performance.now() - began > SLOW_MS) this.#bufferedLeft = BUFFERED_AFTER_SLOW;
      return isWritten;
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

/** Writes from the given memory if it is aligned, else from an aligned copy. Returns false if the copy is in use. */
async function writeAligned(handle: FileHandle, at: number, bytes: Uint8Array): Promise<boolean> {
  if (!needsAlignedCopy) {
    try {
      await writeFully(handle, at, bytes);
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
    for (let from = 0; from < bytes.length; from += BUFFER_BYTES) {
      const part = bytes.subarray(from, from + BUFFER_BYTES);
      aligned.set(part);
      await writeFully(handle, at + from, aligned.subarray(0, part.length));
    }
    return true;
  } finally {
    isAlignedInUse = false;
  }
}

/** A direct write is whole unless the disk is full, which the next attempt reports. */
async function writeFully(handle: FileHandle, at: number, bytes: Uint8Array): Promise<void> {
  for (let put = 0; put < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, put, bytes.length - put, at + put);
    put += bytesWritten;
  }
}
