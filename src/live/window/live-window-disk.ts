import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Files, OpenFile } from "../../runtime/contract.ts";
import type { KeptSegment } from "./live-window-segment.ts";

/** Bytes per write: large enough for low overhead, small enough to avoid large copies. */
const WRITE_BYTES = 1024 * 1024;
/** Limit of files kept open for players behind the edge. */
const MAX_OPEN_FILES = 8;

/** A file on disk and its readers. */
interface StoredFile {
  readonly path: string;
  readonly bytes: number;
  handle: Promise<OpenFile> | undefined;
  users: number;
  isRemoved: boolean;
}

/** The folder of one stream's window: one file per segment. It belongs to this process. */
export class LiveWindowDisk {
  readonly #files: Pick<Files, "open" | "remove">;
  readonly #folder: string;
  readonly #log: Log;
  readonly #stored = new Map<number, StoredFile>();
  /** Entries with an open file, least recently read first. */
  readonly #open = new Set<StoredFile>();
  /** Resolves when files of an earlier window have been removed. */
  readonly #cleared: Promise<void>;
  readonly #removals = new Set<Promise<void>>();
  #bytes = 0;

  /** Uses the folder only after `free` has resolved: an earlier window of the stream removes it when it closes. */
  constructor(files: Pick<Files, "open" | "remove">, folder: string, log: Log, free: Promise<void>) {
    this.#files = files;
    this.#folder = folder;
    this.#log = log;
    this.#cleared = free.then(() => this.#remove(folder));
  }

  /** Total size of the files. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Writes a closed segment completely, or not at all. Rejects with `SluiceError("disk_full")`, or with the disk's
   * error. */
  async save(segment: KeptSegment): Promise<void> {
    await this.#cleared;
    const { epoch, number, serial } = segment.facts;
    const path = `${this.#folder}/${epoch}-${number}-${serial}.ts`;
    const file = await this.#files.open(path);
    try {
      for (let at = 0; at < segment.bytes; ) {
        const chunk = segment.peek(at, WRITE_BYTES);
        // The segment was dropped meanwhile, because the disk is too slow.
        if (!chunk) throw new SluiceError("no_such_segment", "the segment has left the live window");
        await file.write(at, chunk);
        at += chunk.length;
      }
    } catch (thrown) {
      await file.close().catch(() => {}); // The first error is reported.
      await this.#remove(path);
      throw thrown;
    }
    await file.close();
    this.#stored.set(serial, { path, bytes: segment.bytes, handle: undefined, users: 0, isRemoved: false });
    this.#bytes += segment.bytes;
  }

  /** Reads `length` bytes of a segment; its file is kept until then. Rejects with `no_such_segment` if it was removed. */
  async read(segment: KeptSegment, at: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    const stored = this.#stored.get(segment.facts.serial);
    if (!stored) throw new SluiceError("no_such_segment", "the segment has left the live window");
    const bytes = new Uint8Array(length);
    stored.users++;
    try {
      stored.handle ??= this.#files.open(stored.path);
      this.#open.delete(stored);
      this.#open.add(stored);
      await (await stored.handle).read(at, bytes);
      return bytes;
    } catch (thrown) {
      await this.#closeFile(stored);
      throw thrown;
    } finally {
      stored.users--;
      if (stored.isRemoved) await this.#removeFile(stored);
      else await this.#closeIdleFiles();
    }
  }

  /** Removes a segment's file, after its last reader. */
  remove(segment: KeptSegment): void {
    const stored = this.#stored.get(segment.facts.serial);
    if (!stored) return;
    this.#stored.delete(segment.facts.serial);
    this.#bytes -= stored.bytes;
    stored.isRemoved = true;
    if (stored.users > 0) return;
    const removal = this.#removeFile(stored).finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }

  /** Resolves when all removals are complete. */
  async settled(): Promise<void> {
    await Promise.all(this.#removals);
  }

  /** Removes the folder. Do not call `save` or `read` afterwards. */
  async close(): Promise<void> {
    await this.#cleared;
    await this.settled();
    for (const stored of this.#open) await this.#closeFile(stored);
    this.#stored.clear();
    this.#bytes = 0;
    await this.#remove(this.#folder);
  }

  async #removeFile(stored: StoredFile): Promise<void> {
    if (stored.users > 0) return;
    await this.#closeFile(stored);
    await this.#remove(stored.path);
  }

  async #closeIdleFiles(): Promise<void> {
    for (const stored of this.#open) {
      if (this.#open.size <= MAX_OPEN_FILES) return;
      if (stored.users === 0) await this.#closeFile(stored);
    }
  }

  async #closeFile(stored: StoredFile): Promise<void> {
    const { handle } = stored;
    stored.handle = undefined;
    this.#open.delete(stored);
    // The reader has received the error of a file that could not be opened.
    await handle?.then((file) => file.close()).catch(() => {});
  }

  async #remove(path: string): Promise<void> {
    try {
      await this.#files.remove(path);
    } catch (thrown) {
      this.#log.warn("cannot remove files of a live stream", {
        path,
        reason: messageOf(thrown),
      });
    }
  }
}
