import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Files } from "../../runtime/contract.ts";
import { LiveWindowDisk } from "./live-window-disk.ts";
import type { KeptSegment } from "./live-window-segment.ts";

/** Where segments are kept, and how many. */
export interface LiveWindowStoreParts {
  readonly files: Pick<Files, "open" | "remove">;
  readonly folder: string | undefined;
  readonly free: Promise<void>;
  readonly limitMs: number;
  readonly limitBytes: () => number;
  readonly log: Log;
}

/** What players at the edge read stays in memory so long once it is on disk. */
const MEMORY_MS = 12_000;
/** What is in memory may take so much; where that is less than {@link MEMORY_MS} of a stream without disk, as much as that. */
const MEMORY_BYTES = 16 * 1024 * 1024;
/** But never more, however slow the disk is: the oldest goes that waits for it. */
const MOST_MEMORY_BYTES = 64 * 1024 * 1024;
/** Segments that are kept: a day of 2 s each. More would only fill memory with what is known of them. */
const MAX_SEGMENTS = 43_200;
/** Players ask for parts of the last few segments alone. */
const SEGMENTS_WITH_PARTS = 8;

/**
 * The segments of a window in memory and on disk, and their bounds: by time, by bytes and by count. Where the disk is slow, full or broken
 * the window becomes shorter; neither does memory grow nor does anybody wait.
 */
export class LiveWindowStore {
  readonly #parts: LiveWindowStoreParts;
  readonly #disk: LiveWindowDisk | undefined;
  #segments: KeptSegment[] = [];
  /** Those in memory, the oldest first. */
  readonly #held = new Set<KeptSegment>();
  readonly #waiting: KeptSegment[] = [];
  #memoryBytes = 0;
  #saving: Promise<void> | undefined;
  #isTroubled = false;
  #isClosed = false;

  constructor(parts: LiveWindowStoreParts) {
    this.#parts = parts;
    const { folder, free, files, log } = parts;
    this.#disk = folder === undefined ? undefined : new LiveWindowDisk(files, folder, log, free);
  }

  /** The oldest first; some may be gone. */
  get segments(): readonly KeptSegment[] {
    return this.#segments;
  }

  get memoryBytes(): number {
    return this.#memoryBytes;
  }

  get diskBytes(): number {
    return this.#disk?.bytes ?? 0;
  }

  /** The first segment with this serial or a later one that is there. */
  from(serial: number): KeptSegment | undefined {
    const [first] = this.#segments;
    if (!first) return undefined;
    let index = Math.max(0, serial - first.facts.serial);
    while (this.#segments[index]?.isGone) index++;
    return this.#segments[index];
  }

  add(segment: KeptSegment): void {
    this.#segments.push(segment);
    this.#held.add(segment);
  }

  /** The open segment has so many bytes more. */
  grew(bytes: number): void {
    this.#memoryBytes += bytes;
  }

  /** A segment is whole, and may go to the disk. */
  closed(segment: KeptSegment): void {
    const old = this.#segments[this.#segments.length - SEGMENTS_WITH_PARTS];
    if (old) old.parts = [];
    const disk = this.#disk;
    const limitBytes = this.#parts.limitBytes();
    // Other streams may have come that share it.
    if (disk) this.#freeDisk(disk, limitBytes);
    if (disk && limitBytes > 0 && segment.bytes > 0) {
      segment.storage = "waiting";
      this.#waiting.push(segment);
      this.#saving ??= this.#save(disk);
    }
    this.#trim();
  }

  /** To be called after each piece: memory is bounded even while a segment is open. */
  keepBounds(): void {
    if (this.#memoryBytes > MOST_MEMORY_BYTES) this.#trim();
  }

  /** What stands there, at most `limit` bytes; a view where it is in memory. */
  async read(segment: KeptSegment, at: number, limit: number): Promise<Uint8Array> {
    const held = segment.peek(at, limit);
    if (held) return held;
    if (!this.#disk || segment.storage !== "saved" || this.#isClosed) throw goneBy();
    try {
      return await this.#disk.read(segment, at, Math.min(limit, segment.bytes - at));
    } catch (thrown) {
      if (!segment.isGone) this.#warn("a kept segment of a live stream cannot be read", thrown);
      this.#drop(segment);
      throw goneBy();
    }
  }

  /** Forgets all segments. */
  clear(): void {
    const all = this.#segments;
    this.#segments = [];
    for (const segment of all) this.#drop(segment);
  }

  /** Forgets all, and removes the folder. */
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
        this.#isTroubled = false;
      } catch (thrown) {
        next.storage = "memory";
        if (!next.isGone) this.#warn("a live stream cannot be kept on disk: its window is shorter", thrown);
      }
      if (next.isGone) disk.remove(next);
      this.#trim();
    }
    this.#saving = undefined;
  }

  /** False where it is larger than all that may be on disk. */
  async #write(disk: LiveWindowDisk, segment: KeptSegment): Promise<boolean> {
    const limitBytes = this.#parts.limitBytes();
    if (segment.bytes > limitBytes) return false;
    this.#freeDisk(disk, limitBytes - segment.bytes);
    try {
      await disk.save(segment);
    } catch (thrown) {
      if (!(thrown instanceof SluiceError) || thrown.code !== "disk_full" || disk.bytes === 0) throw thrown;
      // Others have filled the disk: what is oldest makes room.
      this.#freeDisk(disk, Math.max(0, disk.bytes - 2 * segment.bytes));
      await disk.settled();
      await disk.save(segment);
    }
    return true;
  }

  /** Takes the oldest off the disk until that holds no more than this. What is in memory as well stays there. */
  #freeDisk(disk: LiveWindowDisk, bytes: number): void {
    for (const segment of this.#segments) {
      if (disk.bytes <= bytes) return;
      if (segment.storage !== "saved" || segment.isGone) continue;
      if (this.#held.has(segment)) {
        segment.storage = "memory";
        disk.remove(segment);
      } else {
        this.#drop(segment);
      }
    }
  }

  #trim(): void {
    const { limitMs } = this.#parts;
    const edgeMs = this.#segments.at(-1)?.endMs ?? 0;
    for (let first = this.#segments[0]; first?.isClosed; first = this.#segments[0]) {
      if (edgeMs - first.endMs <= limitMs && this.#segments.length <= MAX_SEGMENTS) break;
      this.#drop(first);
    }
    for (const segment of this.#held) {
      const isOld = edgeMs - segment.endMs > MEMORY_MS;
      const isMuch = this.#memoryBytes > MEMORY_BYTES;
      if (!segment.isClosed || !(isOld || isMuch)) break;
      const isTooMuch = this.#memoryBytes > MOST_MEMORY_BYTES;
      if (segment.storage === "saved") this.#release(segment);
      else if (segment.storage === "memory" ? isTooMuch || (isOld && isMuch) : isTooMuch) {
        // What is being written is done soon, or else nothing ever were.
        if (segment.storage !== "writing") this.#drop(segment);
      }
    }
  }

  #release(segment: KeptSegment): void {
    if (!this.#held.delete(segment)) return;
    this.#memoryBytes -= segment.memoryBytes;
    segment.release();
  }

  /** Takes a segment out of the window. */
  #drop(segment: KeptSegment): void {
    segment.isGone = true;
    this.#release(segment);
    if (segment.storage === "saved") this.#disk?.remove(segment);
    let left = 0;
    while (this.#segments[left]?.isGone) left++;
    if (left > 0) this.#segments = this.#segments.slice(left);
  }

  /** Says what is wrong with the disk, once until it is right again. */
  #warn(message: string, thrown: unknown): void {
    if (this.#isTroubled) return;
    this.#isTroubled = true;
    this.#parts.log.warn(message, { reason: messageOf(thrown) });
  }
}

function goneBy(): SluiceError {
  return new SluiceError("no_such_segment", "the segment has gone by, or never was");
}
