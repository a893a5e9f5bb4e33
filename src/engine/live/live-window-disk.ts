import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Files, OpenFile } from "../../runtime/contract.ts";
import type { KeptSegment } from "./live-window-segment.ts";

/** Segments are written in portions: large enough to cost little, small enough that none copies much. */
const PORTION_BYTES = 1024 * 1024;
/** Files kept open for players that are behind. */
const MAX_OPEN = 8;

/** A file that is there, and who uses it. */
interface Stored {
  readonly path: string;
  readonly bytes: number;
  handle: Promise<OpenFile> | undefined;
  users: number;
  isDoomed: boolean;
}

/** The folder of one stream's window: a file for each segment, nothing else. It belongs to this run alone. */
export class LiveWindowDisk {
  readonly #files: Pick<Files, "open" | "remove">;
  readonly #folder: string;
  readonly #log: Log;
  readonly #stored = new Map<number, Stored>();
  /** Those whose files are open, the least recently read first. */
  readonly #open = new Set<Stored>();
  /** What was there before is gone. */
  readonly #cleared: Promise<void>;
  readonly #removals = new Set<Promise<void>>();
  #bytes = 0;

  /** Touches the folder from when `free` has resolved on: an earlier window of the stream removes it when it closes. */
  constructor(files: Pick<Files, "open" | "remove">, folder: string, log: Log, free: Promise<void>) {
    this.#files = files;
    this.#folder = folder;
    this.#log = log;
    this.#cleared = free.then(() => this.#remove(folder));
  }

  /** Bytes of all files. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Writes a closed segment, whole or not at all. Rejects with `SluiceError("disk_full")`, or as the disk does. */
  async save(segment: KeptSegment): Promise<void> {
    await this.#cleared;
    const { epoch, number, serial } = segment.facts;
    const path = `${this.#folder}/${epoch}-${number}-${serial}.ts`;
    const file = await this.#files.open(path);
    try {
      for (let at = 0; at < segment.bytes; ) {
        const portion = segment.peek(at, PORTION_BYTES);
        // It was dropped meanwhile, since the disk is too slow.
        if (!portion) throw new SluiceError("no_such_segment", "the segment has gone by");
        await file.write(at, portion);
        at += portion.length;
      }
    } catch (thrown) {
      await file.close().catch(() => {}); // The first error says what happened.
      await this.#remove(path);
      throw thrown;
    }
    await file.close();
    this.#stored.set(serial, { path, bytes: segment.bytes, handle: undefined, users: 0, isDoomed: false });
    this.#bytes += segment.bytes;
  }

  /** So many bytes of a segment. The file stays for as long as this takes; rejects with `no_such_segment` where it has gone. */
  async read(segment: KeptSegment, at: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    const stored = this.#stored.get(segment.facts.serial);
    if (!stored) throw new SluiceError("no_such_segment", "the segment has gone by");
    const bytes = new Uint8Array(length);
    stored.users++;
    try {
      stored.handle ??= this.#files.open(stored.path);
      this.#open.delete(stored);
      this.#open.add(stored);
      await (await stored.handle).read(at, bytes);
      return bytes;
    } catch (thrown) {
      await this.#shut(stored);
      throw thrown;
    } finally {
      stored.users--;
      if (stored.isDoomed) await this.#finish(stored);
      else await this.#shutIdle();
    }
  }

  /** Removes a segment's file as soon as nobody reads it. */
  remove(segment: KeptSegment): void {
    const stored = this.#stored.get(segment.facts.serial);
    if (!stored) return;
    this.#stored.delete(segment.facts.serial);
    this.#bytes -= stored.bytes;
    stored.isDoomed = true;
    if (stored.users > 0) return;
    const removal = this.#finish(stored).finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }

  /** Resolves when all that was removed has left the disk. */
  async settled(): Promise<void> {
    await Promise.all(this.#removals);
  }

  /** Removes the folder. Nothing may be saved or read any more. */
  async close(): Promise<void> {
    await this.#cleared;
    await this.settled();
    for (const stored of this.#open) await this.#shut(stored);
    this.#stored.clear();
    this.#bytes = 0;
    await this.#remove(this.#folder);
  }

  async #finish(stored: Stored): Promise<void> {
    if (stored.users > 0) return;
    await this.#shut(stored);
    await this.#remove(stored.path);
  }

  async #shutIdle(): Promise<void> {
    for (const stored of this.#open) {
      if (this.#open.size <= MAX_OPEN) return;
      if (stored.users === 0) await this.#shut(stored);
    }
  }

  async #shut(stored: Stored): Promise<void> {
    const { handle } = stored;
    stored.handle = undefined;
    this.#open.delete(stored);
    // A file that could not be opened has told so to who read it.
    await handle?.then((file) => file.close()).catch(() => {});
  }

  async #remove(path: string): Promise<void> {
    try {
      await this.#files.remove(path);
    } catch (thrown) {
      this.#log.warn("what was kept of a live stream could not be removed", {
        path,
        reason: messageOf(thrown),
      });
    }
  }
}
