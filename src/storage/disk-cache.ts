import { Bits } from "../base/bits.ts";
import { messageOf } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { SwarmLayout } from "../protocol/swarm/contract.ts";
import type { PieceCheck } from "../protocol/swarm/piece-check.ts";
import type { Clock, Files } from "../runtime/contract.ts";
import type {
  CacheContents,
  CacheContext,
  CachedContent,
  CachedSegment,
  CacheShelf,
  ContentFolder,
} from "./cache-contract.ts";
import { CacheFolder } from "./cache-folder.ts";
import { type CacheLayout, cacheLayout, pieceBytes, piecesOfSegment, segmentName } from "./cache-layout.ts";
import { type CacheRecord, decodeRecord, fitsLayout, MAX_RECORD_BYTES, RECORD_NAME } from "./cache-record.ts";
import { recoverPieces } from "./cache-recovery.ts";
import { GuestFolder } from "./guest-folder.ts";

/** Dependencies of {@link DiskCache}. */
export interface DiskCacheDependencies {
  readonly files: Files;
  readonly clock: Clock;
  readonly isRight: PieceCheck;
  readonly log: Log;
  /** The folder of the cache. */
  readonly path: string;
  /** Size limit of all content; if it shrinks, {@link DiskCache.limitChanged} has to be called. */
  readonly limitBytes: number;
  /** Acquires the lock of the folder and returns its release function; undefined if another process holds the lock. */
  readonly lock: () => Promise<(() => void) | undefined>;
  /** Returns true for content that the user keeps: it is never evicted. */
  readonly isKept: (infohash: Infohash) => boolean;
  /** Called when a piece in memory may be evicted. */
  readonly memoryChanged: () => void;
}

/**
 * The disk cache of all content: one folder per infohash, named by it. One size limit applies to all content; the least recently
 * read segments are evicted first, except segments that a reader will soon need.
 *
 * One process owns the cache: only the owner writes and removes files. Another process reads what exists, and becomes the
 * owner when it opens content after the owner has exited.
 */
export class DiskCache implements CacheContext, CacheContents {
  readonly files: Files;
  readonly clock: Clock;
  readonly log: Log;
  readonly #parts: DiskCacheDependencies;
  /** Least recently read first. */
  readonly #segments = new Map<string, CachedSegment>();
  #bytes = 0;
  /** Space reserved for writes in progress. */
  #writingBytes = 0;
  #removals: Promise<void> = Promise.resolve();
  /** Releases the lock; undefined while another process holds it. */
  #unlock: (() => void) | undefined;
  #owning: Promise<void> | undefined;

  private constructor(parts: DiskCacheDependencies) {
    this.files = parts.files;
    this.clock = parts.clock;
    this.log = parts.log.named("cache");
    this.#parts = parts;
  }

  /** Opens the cache and, if no other process owns it, reads the records of earlier runs. */
  static async open(parts: DiskCacheDependencies): Promise<DiskCache> {
    const cache = new DiskCache(parts);
    await cache.#own();
    if (!cache.#unlock) cache.log.info("another process owns the disk cache: reading from it only");
    return cache;
  }

  /** Opens the folder of content that may be cached already, with all pieces that still exist. */
  async open(infohash: Infohash, swarmLayout: SwarmLayout): Promise<ContentFolder> {
    await this.#own();
    const layout = cacheLayout(swarmLayout);
    const path = this.#path(infohash);
    // From here on these segments are not evicted.
    for (const segment of this.#segmentsOf(infohash)) this.#take(segment);
    await this.#removals;
    const record = await this.#record(path).catch((error: unknown) => {
      this.log.warn("cannot read a record of the disk cache", { reason: messageOf(error) });
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

  /** Opens an empty folder for content whose layout was not known before; existing files are removed. */
  openFresh(infohash: Infohash, swarmLayout: SwarmLayout): ContentFolder {
    const layout = cacheLayout(swarmLayout);
    if (!this.#unlock)
      return new GuestFolder(this.files, this.#path(infohash), layout, new Bits(layout.pieceCount));
    for (const segment of this.#segmentsOf(infohash)) this.#take(segment);
    const before = this.#removals.then(() => this.remove(this.#path(infohash)));
    return this.#folder(infohash, layout, new Bits(layout.pieceCount), undefined, before);
  }

  /** Evicts what exceeds a limit that has become smaller. */
  limitChanged(): void {
    if (this.#unlock) this.#shrinkTo(this.#parts.limitBytes - this.#writingBytes);
  }

  /** Bytes of open content and of content that is not open. */
  figures(): { activeBytes: number; inactiveBytes: number } {
    let activeBytes = 0;
    for (const { folder, bytes } of this.#segments.values()) if (folder) activeBytes += bytes;
    return { activeBytes, inactiveBytes: this.#bytes - activeBytes };
  }

  /** Removes the least recently read segments until `bytes` are free or nothing is left. Returns the number of freed bytes; 0 if another
   * process owns the cache. */
  async free(bytes: number): Promise<number> {
    if (!this.#unlock) return 0;
    const before = this.#bytes;
    this.#shrinkTo(Math.max(0, before - bytes));
    await this.#removals;
    return before - this.#bytes;
  }

  get isOwner(): boolean {
    return this.#unlock !== undefined;
  }

  contents(): readonly CachedContent[] {
    const contents = new Map<Infohash, CachedContent>();
    for (const { infohash, bytes, lastRead, folder } of this.#segments.values()) {
      const before = contents.get(infohash);
      contents.set(infohash, {
        infohash,
        bytes: bytes + (before?.bytes ?? 0),
        lastRead: Math.max(lastRead, before?.lastRead ?? 0),
        isOpen: folder !== undefined || before?.isOpen === true,
        isKept: this.#parts.isKept(infohash),
      });
    }
    return [...contents.values()];
  }

  async removeContents(infohashes: Iterable<Infohash>): Promise<number> {
    const asked = new Set(infohashes);
    const before = this.#bytes;
    const removed = new Set<Infohash>();
    for (const segment of [...this.#segments.values()]) {
      if (!asked.has(segment.infohash) || segment.folder !== undefined) continue;
      this.#take(segment);
      removed.add(segment.infohash);
    }
    const freed = before - this.#bytes;
    for (const infohash of removed)
      this.#removals = this.#removals.then(() => this.remove(this.#path(infohash)));
    await this.#removals;
    return freed;
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
      this.log.warn("cannot remove a cached file", { reason: messageOf(error) });
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

  /** Resolves when all evicted files are removed and another process may own the cache. */
  async close(): Promise<void> {
    await this.#owning;
    await this.#removals;
    this.#unlock?.();
    this.#unlock = undefined;
  }

  /** Becomes the owner if no other process is. */
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

  /** The segments of a folder of an earlier run, from its record; none without a record. */
  async #survey(infohash: Infohash): Promise<CachedSegment[]> {
    const path = this.#path(infohash);
    try {
      const record = await this.#record(path);
      if (record === undefined) {
        // The run that made this folder ended before it wrote the first record.
        await this.remove(path);
        return [];
      }
      const names = new Set(await this.files.list(path));
      const layout = { ...record, segmentCount: Math.ceil(record.pieceCount / record.piecesPerSegment) };
      const segments = segmentsIn(infohash, layout, record.pieces, record.lastRead, 0);
      return segments.filter(({ index }) => names.has(segmentName(index)));
    } catch (error) {
      this.log.warn("cannot read a folder of the disk cache", { infohash, reason: messageOf(error) });
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
      if (segment === but || this.#parts.isKept(segment.infohash)) continue;
      if (segment.folder?.isWanted(segment.index)) continue;
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

/** The segments that contain at least one of `pieces`. */
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
