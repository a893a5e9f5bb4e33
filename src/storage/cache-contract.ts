import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Clock, Files } from "../runtime/contract.ts";
import type { PieceDisk } from "./piece-store.ts";

/** One segment file. */
export interface CachedSegment {
  readonly infohash: Infohash;
  readonly index: number;
  bytes: number;
  /** Wall-clock seconds. */
  lastRead: number;
  /** The folder while the content is open. */
  folder: EvictableFolder | undefined;
}

/** What the disk cache has of one content. */
export interface CachedContent {
  readonly infohash: Infohash;
  /** Bytes on disk. */
  readonly bytes: number;
  /** UNIX seconds; 0 if unknown. */
  readonly lastRead: number;
  /** True while a transfer uses the content. */
  readonly isOpen: boolean;
  /** True if the user keeps it: it is never evicted. */
  readonly isKept: boolean;
}

/** The disk cache, as its user manages it. */
export interface CacheContents {
  /** Only the process that owns the cache knows and removes its content. */
  readonly isOwner: boolean;
  /** Returns what the cache has of each content. */
  contents(): readonly CachedContent[];
  /** Removes contents, except open ones. Resolves to the number of freed bytes when the files are removed. */
  removeContents(infohashes: Iterable<Infohash>): Promise<number>;
}

/** An open content folder, as the cache evicts from it. */
interface EvictableFolder {
  /** Returns true if a reader waits for a piece of segment `index`. */
  isWanted(index: number): boolean;
  /** Drops segment `index` and its file. */
  evict(index: number): void;
}

/** Operations of the disk cache that a content folder depends on. */
export interface CacheContext {
  readonly files: Files;
  readonly clock: Clock;
  readonly log: Log;
  /** Evicts least recently read segments until `bytes` fit, and reserves that space until `wrote()`. Returns false if it cannot. */
  makeRoom(bytes: number, forSegment: CachedSegment): boolean;
  wrote(bytes: number): void;
  resize(segment: CachedSegment, byBytes: number): void;
  touch(segment: CachedSegment): void;
  /** Removes a file; a failure is logged. */
  remove(path: string): Promise<void>;
  memoryChanged(): void;
  /** The content is closed: its segments may be evicted for any other content. */
  left(shelf: CacheShelf): void;
}

/** The place of one content in the cache. */
export interface CacheShelf {
  readonly infohash: Infohash;
  readonly path: string;
  /** A new, empty segment. */
  segment(index: number, folder: EvictableFolder): CachedSegment;
}

/** The part of the disk cache that belongs to one transfer. */
export interface ContentFolder extends PieceDisk {
  /** Bytes on disk that this content occupies. */
  readonly bytes: number;
  /** Sets the owner of the pieces; called once, before the first `save`. */
  serve(owner: FolderOwner): void;
  /** Writes all queued pieces, then closes all files. */
  close(): Promise<void>;
}

/** Callbacks from a folder to the store of its transfer. */
export interface FolderOwner {
  isWanted(piece: number): boolean;
  evictedFromDisk(piece: number): void;
}
