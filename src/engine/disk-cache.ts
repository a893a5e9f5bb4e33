import { Bits } from "../base/bits.ts";
import { messageOf } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Clock, Files } from "../runtime/contract.ts";
import type { SwarmLayout } from "../swarm/contract.ts";
import type { PieceCheck } from "../swarm/piece-check.ts";
import { CacheFolder, type ContentFolder } from "./cache-folder.ts";
import { type CacheLayout, cacheLayout, pieceBytes, piecesOfSegment, segmentName } from "./cache-layout.ts";
import { type CacheRecord, decodeRecord, fitsLayout, MAX_RECORD_BYTES, RECORD_NAME } from "./cache-record.ts";
import { recoverPieces } from "./cache-recovery.ts";
import { GuestFolder } from "./guest-folder.ts";

/** One segment file. */
export interface CachedSegment {
  readonly infohash: Infohash;
  readonly index: number;
  bytes: number;
  /** Wall-clock seconds. */
  lastRead: number;
  /** The folder object while the content is open. */
  folder: CacheFolder | undefined;
}

/** The place of one content in the cache. */
export interface CacheShelf {
  readonly infohash: Infohash;
  readonly path: string;
  /** A new, empty segment. */
  segment(index: number, folder: CacheFolder): CachedSegment;
}

/** What folders need of the cache they stand in. */
export interface CacheHouse {
  readonly files: Files;
  readonly clock: Clock;
  readonly log: Log;
  /** Gives up the least recently read segments until `bytes` more fit, and keeps that room until `wrote` is called; false
   * where they cannot. */
  makeRoom(bytes: number, forSegment: CachedSegment): boolean;
  wrote(bytes: number): void;
  resize(segment: CachedSegment, byBytes: number): void;
  touch(segment: CachedSegment): void;
  /** Removes a file; a failure is logged. */
  remove(path: string): Promise<void>;
  memoryChanged(): void;
  /** The content is closed: its segments are anybody's to give up. */
  left(shelf: CacheShelf): void;
}

/** What the cache is made of. */
export interface DiskCacheParts {
  readonly files: Files;
  readonly clock: Clock;
  readonly isRight: PieceCheck;
  readonly log: Log;
  /** The folder of the cache. */
  readonly path: string;
  readonly limitBytes: number;
  /** Takes the lock of the folder; the returned function gives it back. Undefined where another program holds it. */
  readonly lock: () => Promise<(() => void) | undefined>;
  /** Called when something in memory became free to go. */
  readonly memoryChanged: () => void;
}

/**
 * The disk cache of all content: one folder for each infohash, named by it. One limit holds for all; the segments that
 * were read longest ago go first, whoever's they are, but never one that a reader is about to come to.
 *
 * One program at a time writes and removes here: two would take each other's files away. Another is a guest that reads
 * what is there, and owns the cache from the first content on that it opens when the owner has ended.
 */
export class DiskCache implements CacheHouse {
  readonly files: Files;
  readonly clock: Clock;
  readonly log: Log;
  readonly #parts: DiskCacheParts;
  /** Least recently read first. */
  readonly #segments = new Map<string, CachedSegment>();
  #bytes = 0;
  /** Of room that was made for what is being written. */
  #writingBytes = 0;
  #removals: Promise<void> = Promise.resolve();
  /** Gives the lock back; undefined while another program has it. */
  #unlock: (() => void) | undefined;
  #owning: Promise<void> | undefined;

  private constructor(parts: DiskCacheParts) {
    this.files = parts.files;
    this.clock = parts.clock;
    this.log = parts.log.named("cache");
    this.#parts = parts;
  }

  /** Reads what earlier runs left, where no other program has the folder. */
  static async open(parts: DiskCacheParts): Promise<DiskCache> {
    const cache = new DiskCache(parts);
    await cache.#own();
    if (!cache.#unlock)
      cache.log.info("another Sluice has the disk cache: what is there is read, nothing is added");
    return cache;
  }

  /** The folder of content that may have been here before, with all its pieces that are still there. */
  async open(infohash: Infohash, swarmLayout: SwarmLayout): Promise<ContentFolder> {
    await this.#own();
    const layout = cacheLayout(swarmLayout);
    const path = this.#path(infohash);
    // From here on nobody else may give them up.
    for (const segment of this.#segmentsOf(infohash)) this.#take(segment);
    await this.#removals;
    const record = await this.#record(path).catch((error: unknown) => {
      this.log.warn("the record of the disk cache is unreadable", { reason: messageOf(error) });
      return undefined;
    });
    const known = record && fitsLayout(record, layout) ? record : undefined;
    const pieces = new Bits(layout.pieceCount);
    if (known) pieces.load(known.pieces.bytes);
    if (!this.#unlock) return new GuestFolder(this.files, path, layout, pieces);
    const { isRight } = this.#parts;
    const isGood = (piece: number, bytes: Uint8Array) => isRight(swarmLayout, piece, bytes);
    await recoverPieces(
      { files: this.files, path, layout, log: this.log, isGood },
      pieces,
      known?.savedAtMs ?? 0,
    );
    return this.#folder(infohash, layout, pieces, known);
  }

  /** The folder of content whose layout was not known before: whatever lies there is of no use. */
  openFresh(infohash: Infohash, swarmLayout: SwarmLayout): ContentFolder {
    const layout = cacheLayout(swarmLayout);
    if (!this.#unlock)
      return new GuestFolder(this.files, this.#path(infohash), layout, new Bits(layout.pieceCount));
    for (const segment of this.#segmentsOf(infohash)) this.#take(segment);
    const before = this.#removals.then(() => this.remove(this.#path(infohash)));
    return this.#folder(infohash, layout, new Bits(layout.pieceCount), undefined, before);
  }

  /** Bytes of content that is open, and of content that is not. */
  figures(): { activeBytes: number; inactiveBytes: number } {
    let activeBytes = 0;
    for (const { folder, bytes } of this.#segments.values()) if (folder) activeBytes += bytes;
    return { activeBytes, inactiveBytes: this.#bytes - activeBytes };
  }

  makeRoom(bytes: number, forSegment: CachedSegment): boolean {
    if (!this.#shrinkTo(this.#parts.limitBytes - this.#writingBytes - bytes, forSegment)) return false;
    this.#writingBytes += bytes;
    return true;
  }

  wrote(bytes: number): void {
    this.#writingBytes -= bytes;
  }

  resize(segment: CachedSegment, byBytes: number): void {
    segment.bytes += byBytes;
    if (this.#segments.get(keyOf(segment)) === segment) this.#bytes += byBytes;
    else this.#add(segment);
  }

  touch(segment: CachedSegment): void {
    segment.lastRead = this.clock.unixSeconds();
    if (this.#segments.delete(keyOf(segment))) this.#segments.set(keyOf(segment), segment);
  }

  async remove(path: string): Promise<void> {
    try {
      await this.files.remove(path);
    } catch (error) {
      this.log.warn("a cached file could not be removed", { reason: messageOf(error) });
    }
  }

  memoryChanged(): void {
    this.#parts.memoryChanged();
  }

  left({ infohash, path }: CacheShelf): void {
    const segments = [...this.#segmentsOf(infohash)];
    for (const segment of segments) segment.folder = undefined;
    if (segments.length === 0) this.#removals = this.#removals.then(() => this.remove(path));
  }

  /** Resolves when all files that were given up are gone, and another program may have the folder. */
  async close(): Promise<void> {
    await this.#owning;
    await this.#removals;
    this.#unlock?.();
    this.#unlock = undefined;
  }

  /** Makes the folder ours, where no other program has it. */
  #own(): Promise<void> {
    if (this.#unlock) return Promise.resolve();
    this.#owning ??= this.#tryToOwn().finally(() => {
      this.#owning = undefined;
    });
    return this.#owning;
  }

  async #tryToOwn(): Promise<void> {
    const unlock = await this.#parts.lock();
    if (!unlock) return;
    try {
      await this.#surveyAll();
    } catch (error) {
      unlock();
      throw error;
    }
    this.#unlock = unlock;
    this.#shrinkTo(this.#parts.limitBytes);
  }

  async #surveyAll(): Promise<void> {
    const found: CachedSegment[] = [];
    for (const name of await this.files.list(this.#parts.path)) {
      if (/^[0-9a-f]{40}$/.test(name)) found.push(...(await this.#survey(name as Infohash)));
    }
    found.sort((a, b) => a.lastRead - b.lastRead);
    for (const segment of found) this.#add(segment);
  }

  #folder(
    infohash: Infohash,
    layout: CacheLayout,
    pieces: Bits,
    record: CacheRecord | undefined,
    before: Promise<void> = Promise.resolve(),
  ): CacheFolder {
    const shelf: CacheShelf = {
      infohash,
      path: this.#path(infohash),
      segment: (index, folder) => ({ infohash, index, bytes: 0, lastRead: this.clock.unixSeconds(), folder }),
    };
    for (const segment of this.#segmentsOf(infohash)) this.#take(segment);
    const segments = segmentsIn(
      infohash,
      layout,
      pieces,
      record?.lastRead ?? new Map(),
      this.clock.unixSeconds(),
    );
    const held = { pieces, segments, hasRecord: record !== undefined };
    const folder = new CacheFolder(this, shelf, layout, held, before);
    for (const segment of segments) {
      segment.folder = folder;
      this.#add(segment);
    }
    return folder;
  }

  /** What a folder of an earlier run holds, by its record; nothing where it has none. */
  async #survey(infohash: Infohash): Promise<CachedSegment[]> {
    const path = this.#path(infohash);
    try {
      const record = await this.#record(path);
      if (record === undefined) {
        // Written by a run that ended before its first record, a moment after it began.
        await this.remove(path);
        return [];
      }
      const names = new Set(await this.files.list(path));
      const layout = { ...record, segmentCount: Math.ceil(record.pieceCount / record.piecesPerSegment) };
      const segments = segmentsIn(infohash, layout, record.pieces, record.lastRead, 0);
      return segments.filter(({ index }) => names.has(segmentName(index)));
    } catch (error) {
      this.log.warn("a folder of the disk cache is unreadable", { infohash, reason: messageOf(error) });
      return [];
    }
  }

  async #record(path: string): Promise<CacheRecord | undefined> {
    const bytes = await this.files.read(`${path}/${RECORD_NAME}`, MAX_RECORD_BYTES);
    return bytes && decodeRecord(bytes);
  }

  #shrinkTo(bytes: number, but?: CachedSegment): boolean {
    if (this.#bytes <= bytes) return true;
    for (const segment of this.#segments.values()) {
      if (segment === but || segment.folder?.isWanted(segment.index)) continue;
      this.#evict(segment);
      if (this.#bytes <= bytes) return true;
    }
    return false;
  }

  #evict(segment: CachedSegment): void {
    this.#take(segment);
    if (segment.folder) {
      segment.folder.evict(segment.index);
      return;
    }
    const path = this.#path(segment.infohash);
    const isLast = this.#segmentsOf(segment.infohash).next().done === true;
    const target = isLast ? path : `${path}/${segmentName(segment.index)}`;
    this.#removals = this.#removals.then(() => this.remove(target));
  }

  *#segmentsOf(infohash: Infohash): Generator<CachedSegment> {
    for (const segment of this.#segments.values()) if (segment.infohash === infohash) yield segment;
  }

  #add(segment: CachedSegment): void {
    this.#segments.set(keyOf(segment), segment);
    this.#bytes += segment.bytes;
  }

  #take(segment: CachedSegment): void {
    if (this.#segments.delete(keyOf(segment))) this.#bytes -= segment.bytes;
  }

  #path(infohash: Infohash): string {
    return `${this.#parts.path}/${infohash}`;
  }
}

function keyOf({ infohash, index }: CachedSegment): string {
  return `${infohash}/${index}`;
}

/** The segments that hold any of `pieces`. */
function segmentsIn(
  infohash: Infohash,
  layout: CacheLayout,
  pieces: Bits,
  times: ReadonlyMap<number, number>,
  otherwise: number,
): CachedSegment[] {
  const segments: CachedSegment[] = [];
  for (let index = 0; index < layout.segmentCount; index++) {
    let bytes = 0;
    for (const piece of piecesOfSegment(layout, index))
      if (pieces.has(piece)) bytes += pieceBytes(layout, piece);
    const lastRead = times.get(index) ?? otherwise;
    if (bytes > 0) segments.push({ infohash, index, bytes, lastRead, folder: undefined });
  }
  return segments;
}
