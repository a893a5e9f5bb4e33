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
}
