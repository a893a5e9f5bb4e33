import type { ByteRange } from "./range.ts";

/** How a reader of a {@link ByteSource} reads. */
export interface ReadOptions {
  /** Ends the read: it rejects (or the stream errors) with the signal's reason. */
  readonly signal?: AbortSignalLike;
  /** How far beyond the position the source may fetch ahead, in bytes. The source has its own default and limit. */
  readonly readAheadBytes?: number;
}

/** The part of `AbortSignal` that the pure rooms may know of. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * The random-access bytes of one file, some of which may still have to be fetched. Demand drives: nothing is fetched
 * that no reader asked for, beyond its read-ahead. Every byte handed out has been verified.
 */
export interface RandomAccess {
  /** The length of the file in bytes. */
  readonly size: number;
  /** Waits for and returns exactly the bytes of `range`, in memory of the caller's own. */
  read(range: ByteRange, options?: ReadOptions): Promise<Uint8Array<ArrayBuffer>>;
}
