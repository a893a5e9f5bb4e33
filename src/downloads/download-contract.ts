import type { Infohash } from "../base/ids.ts";
import type { UnixSeconds } from "../base/time.ts";
import type { OwnLimits } from "../net/peer-limits.ts";
import type { ContentSelector } from "../transfer/contract.ts";

/** Indexes of files, as ranges `[first, last]`; null: all files. */
export type ChosenFiles = readonly (readonly [first: number, last: number])[] | null;

/** Content that the user keeps: the engine fetches it, and the disk cache never evicts it. */
export interface Download {
  readonly infohash: Infohash;
  readonly name: string;
  readonly addedAt: UnixSeconds;
  readonly files: ChosenFiles;
  /** `waiting`: other downloads are fetched first. `failed`: it is retried after a minute. */
  readonly state: "waiting" | "downloading" | "complete" | "paused" | "failed";
  readonly problem: string | null;
  /** Bytes of the chosen files. */
  readonly size: number;
  /** Verified bytes of the chosen files. */
  readonly heldBytes: number;
  readonly limits: OwnLimits;
}

/** The content to keep. */
export interface DownloadRequest {
  readonly selector: ContentSelector;
  /** Indexes of files; empty: all. */
  readonly files: readonly number[];
  /** Whether its trackers and web seeds may be on this host and its network. */
  readonly allowPrivateUrls: boolean;
  readonly signal: AbortSignal;
}

/** The downloads, which continue after a restart. All methods reject with `SluiceError`. */
export interface Downloads {
  /** The latest first. */
  list(): readonly Download[];
  /**
   * Keeps content, after its files are known. Content that is kept already gets these files instead. Rejects with `disk_full` if the
   * disk or the limit of the cache is too small, `unsupported_content` for a live stream or content of a web server,
   * `no_such_file`, `too_many`.
   */
  add(request: DownloadRequest): Promise<Download>;
  pause(infohash: Infohash): Promise<Download>;
  resume(infohash: Infohash): Promise<Download>;
  /** Limits the upload and download of one transfer. Limits of a download are stored; others last until the engine stops. */
  limit(infohash: Infohash, limits: OwnLimits): Promise<void>;
  /** Ends a download. Deletes its data unless `leavesData`: the cache then evicts it when it needs the space. */
  remove(infohash: Infohash, leavesData: boolean): Promise<void>;
}
