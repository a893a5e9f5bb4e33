import { concatBytes } from "../../base/bytes.ts";
import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Files } from "../../runtime/contract.ts";
import { LiveWindowDisk } from "./live-window-disk.ts";
import type { KeptSegment } from "./live-window-segment.ts";

/** Where segments are kept, and the limits. */
export interface LiveWindowStoreOptions {
  readonly files: Pick<Files, "open" | "remove">;
  readonly folder: string | undefined;
  readonly free: Promise<void>;
  readonly limitMs: number;
  readonly limitBytes: () => number;
  /** Limit of memory; without a disk, as much as {@link MEMORY_MS} of the stream takes, if that is more (default: 16 MiB). */
  readonly memoryBytes?: number;
  readonly log: Log;
}

/** Segments that are on disk stay in memory for this long, for players at the live edge. */
const MEMORY_MS = 12_000;
const MEMORY_BYTES = 16 * 1024 * 1024;
/** Hard memory limit: if the disk is slower, the oldest segment that waits to be written is dropped. */
const MAX_MEMORY_BYTES = 64 * 1024 * 1024;
/** Limit of segments: one day of 2 s each. */
const MAX_SEGMENTS = 43_200;
/** Players request parts of the last segments only. */
const SEGMENTS_WITH_PARTS = 8;

/** Joined reads that are kept for other players: as many places as players behind the edge usually have, 1 MiB in total. */
const MAX_JOINED = 8;
const MAX_JOINED_BYTES = 128 * 1024;

/** Bytes of a segment that were joined from several runs. */
interface JoinedRead {
  readonly segment: KeptSegment;
  readonly at: number;
  readonly bytes: Uint8Array;
}

/** The segments of a window in memory and on disk, limited by time, bytes and count. If the disk is slow, full or
 * broken, the window becomes shorter; memory does not grow and no caller waits. */
export class LiveWindowStore {
  readonly #options: LiveWindowStoreOptions;
  readonly #disk: LiveWindowDisk | undefined;
  #segments: KeptSegment[] = [];
  /** Segments in memory, oldest first. */
  readonly #inMemory = new Set<KeptSegment>();
  readonly #waiting: KeptSegment[] = [];
  readonly #joined: JoinedRead[] = [];
  #memoryBytes = 0;
  #saving: Promise<void> | undefined;
  #isWarned = false;
  #isClosed = false;

  constructor(options: LiveWindowStoreOptions) {
    this.#options = options;
    const { folder, free, files, log } = options;
    this.#disk = folder === undefined ? undefined : new LiveWindowDisk(files, folder, log, free);
  }

  /** Oldest first; some may be gone. */
  get segments(): readonly KeptSegment[] {
    return this.#segments;
  }

  get memoryBytes(): number {
    return this.#memoryBytes;
  }

  get diskBytes(): number {
    return this.#disk?.bytes ?? 0;
  }

  /** Returns the first available segment with this serial number or a later one. */
  from(serial: number): KeptSegment | undefined {
    const [first] = this.#segments;
    if (!first) return undefined;
    let index = Math.max(0, serial - first.facts.serial);
    while (this.#segments[index]?.isGone) index++;
    return this.#segments[index];
  }

  add(segment: KeptSegment): void {
    this.#segments.push(segment);
    this.#inMemory.add(segment);
  }

  /** Counts bytes added to the open segment. */
  countAppended(bytes: number): void {
    this.#memoryBytes += bytes;
  }

  /** A segment is complete and may be written to disk. */
  closed(segment: KeptSegment): void {
    const old = this.#segments[this.#segments.length - SEGMENTS_WITH_PARTS];
    if (old) old.parts = [];
    const disk = this.#disk;
    const limitBytes = this.#options.limitBytes();
    // More streams may share the limit now.
    if (disk) this.#freeDisk(disk, limitBytes);
    if (disk && limitBytes > 0 && segment.bytes > 0) {
      segment.storage = "waiting";
      this.#waiting.push(segment);
      this.#saving ??= this.#save(disk);
    }
    this.#trim();
  }

  /** Call this after each piece: it limits memory while a segment is open. */
  limitMemory(): void {
    if (this.#memoryBytes > MAX_MEMORY_BYTES) this.#trim();
  }

  /** Returns up to `limit` bytes at `at`; a view if they are in memory. */
  async read(segment: KeptSegment, at: number, limit: number): Promise<Uint8Array> {
    const held = segment.peek(at, limit, (views) => this.#join(segment, at, views));
    if (held) return held;
    if (!this.#disk || segment.storage !== "saved" || this.#isClosed) throw noSuchSegment();
    try {
      return await this.#disk.read(segment, at, Math.min(limit, segment.bytes - at));
    } catch (thrown) {
      if (!segment.isGone) this.#warn("cannot read a segment of a live stream from disk", thrown);
      this.#drop(segment);
      throw noSuchSegment();
    }
  }

  /** Joins runs, unless another player has just read the same bytes. */
  #join(segment: KeptSegment, at: number, views: Uint8Array[]): Uint8Array {
    const length = views.reduce((sum, view) => sum + view.length, 0);
    const known = this.#joined.find(
      (one) => one.segment === segment && one.at === at && one.bytes.length === length,
    );
    if (known) return known.bytes;
    const bytes = concatBytes(views);
    if (length > MAX_JOINED_BYTES) return bytes;
    this.#joined.push({ segment, at, bytes });
    if (this.#joined.length > MAX_JOINED) this.#joined.shift();
    return bytes;
  }

  /** Drops all segments. */
  clear(): void {
    this.#joined.length = 0;
    const all = this.#segments;
    this.#segments = [];
    for (const segment of all) this.#drop(segment);
  }

  /** Drops all segments and removes the folder. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.clear();
    await this.#saving;
    await this.#disk?.close();
  }

  async #save(disk: LiveWindowDisk): Promise<void> {
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      if (next.isGone) continue;
      next.storage = "writing";
      try {
        next.storage = (await this.#write(disk, next)) ? "saved" : "memory";
        this.#isWarned = false;
      } catch (thrown) {
        next.storage = "memory";
        if (!next.isGone) this.#warn("cannot write a live stream to disk; its window is shorter", thrown);
      }
      if (next.isGone) disk.remove(next);
      this.#trim();
    }
    this.#saving = undefined;
  }

  /** Returns false if the segment exceeds the disk limit. */
  async #write(disk: LiveWindowDisk, segment: KeptSegment): Promise<boolean> {
    const limitBytes = this.#options.limitBytes();
    if (segment.bytes > limitBytes) return false;
    this.#freeDisk(disk, limitBytes - segment.bytes);
    try {
      await disk.save(segment);
    } catch (thrown) {
      if (!(thrown instanceof SluiceError) || thrown.code !== "disk_full" || disk.bytes === 0) throw thrown;
      // Other programs have filled the disk: the oldest segments make room.
      this.#freeDisk(disk, Math.max(0, disk.bytes - 2 * segment.bytes));
      await disk.settled();
      await disk.save(segment);
    }
    return true;
  }

  /** Removes the oldest files until at most `bytes` are used. Copies in memory are kept. */
  #freeDisk(disk: LiveWindowDisk, bytes: number): void {
    for (const segment of this.#segments) {
      if (disk.bytes <= bytes) return;
      if (segment.storage !== "saved" || segment.isGone) continue;
      if (this.#inMemory.has(segment)) {
        segment.storage = "memory";
        disk.remove(segment);
      } else {
        this.#drop(segment);
      }
    }
  }

  #trim(): void {
    const { limitMs, memoryBytes = MEMORY_BYTES } = this.#options;
    const edgeMs = this.#segments.at(-1)?.endMs ?? 0;
    for (let first = this.#segments[0]; first?.isClosed; first = this.#segments[0]) {
      if (edgeMs - first.endMs <= limitMs && this.#segments.length <= MAX_SEGMENTS) break;
      this.#drop(first);
    }
    for (const segment of this.#inMemory) {
      const isOld = edgeMs - segment.endMs > MEMORY_MS;
      const isMuch = this.#memoryBytes > memoryBytes;
      if (!segment.isClosed || !(isOld || isMuch)) break;
      const isTooMuch = this.#memoryBytes > MAX_MEMORY_BYTES;
      if (segment.storage === "saved") this.#release(segment);
      else if (segment.storage === "memory" ? isTooMuch || (isOld && isMuch) : isTooMuch) {
        // A segment that is being written is complete soon; dropping it would only repeat the work.
        if (segment.storage !== "writing") this.#drop(segment);
      }
    }
  }

  #release(segment: KeptSegment): void {
    if (!this.#inMemory.delete(segment)) return;
    this.#memoryBytes -= segment.memoryBytes;
    segment.release();
  }

  /** Removes a segment from the window. */
  #drop(segment: KeptSegment): void {
    segment.isGone = true;
    this.#release(segment);
    if (segment.storage === "saved") this.#disk?.remove(segment);
    let left = 0;
    while (this.#segments[left]?.isGone) left++;
    if (left > 0) this.#segments = this.#segments.slice(left);
  }

  /** Logs a disk problem, once until the disk works again. */
  #warn(message: string, thrown: unknown): void {
    if (this.#isWarned) return;
    this.#isWarned = true;
    this.#options.log.warn(message, { reason: messageOf(thrown) });
  }
}

function noSuchSegment(): SluiceError {
  return new SluiceError("no_such_segment", "the segment has left the live window");
}
