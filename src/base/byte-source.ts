import type { ByteRange } from "./range.ts";

/** Options of {@link RandomAccess.read} and of byte streams. */
export interface ReadOptions {
  /** Aborts the read: it rejects (or the stream errors) with the signal's reason. */
  readonly signal?: AbortSignalLike;
  /** How many bytes after the range the caller is going to read next, if it knows. The source has its own default and limit. */
  readonly readAheadBytes?: number;
}

/** The part of `AbortSignal` that pure code needs; the platform types are not available there. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * Random access to the bytes of one file that may still be downloading. Only reads, and their read-ahead, cause downloads.
 * Every byte returned has been verified.
 */
export interface RandomAccess {
  /** The length of the file in bytes. */
  readonly size: number;
  /** Waits for exactly the bytes of `range` and returns them in a new array. */
  read(range: ByteRange, options?: ReadOptions): Promise<Uint8Array<ArrayBuffer>>;
  /** Opens a reader for reads that follow each other; absent if the source serves them by `read` as well. */
  sequence?(): SequentialReader;
}

/** Reads that follow each other, one at a time. Until it is closed, the reader requests what it is about to read. */
export interface SequentialReader {
  /**
   * Fills `into` with the bytes from `position` on. Returns undefined if that is done, or a promise if it has to wait; the caller must
   * not use `into` until that settles. `readAheadBytes`: how many more bytes are read soon.
   */
  read(position: number, into: Uint8Array, readAheadBytes: number): Promise<void> | undefined;
  /** Ends the reader and what it requests; a pending read rejects with `reason`. */
  close(reason?: unknown): void;
}

/** Reads a range from its start to its end, one read at a time. */
export interface ByteReader {
  /**
   * Fills the head of `into` and returns the number of bytes, 0 at the end. Returns a promise if it has to wait; the caller must
   * not use `into` until that settles. A reader that failed or reached its end has closed itself.
   */
  read(into: Uint8Array): number | Promise<number>;
  /** Ends the reader and its wants; a pending read rejects with `reason`. */
  close(reason?: unknown): void;
}
