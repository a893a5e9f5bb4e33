import type { Files, OpenFile } from "../runtime/contract.ts";
import { segmentName } from "./cache-layout.ts";

/** Limit of open segment files: the one being written and those of active readers. */
const MAX_OPEN = 8;

/** One open file and the number of operations in progress on it. */
interface Handle {
  readonly file: Promise<OpenFile>;
  users: number;
}

/** The open segment files of one folder. A file opens on first use; beyond the limit, the least recently used file closes. */
export class OpenSegments {
  readonly #files: Files;
  readonly #folder: string;
  readonly #handles = new Map<number, Handle>();
  #isClosed = false;

  constructor(files: Files, folder: string) {
    this.#files = files;
    this.#folder = folder;
  }

  /** Runs `work` with the file of `segment`, which stays open until `work` settles. */
  async use<T>(segment: number, work: (file: OpenFile) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new Error("the cache folder is closed");
    const handle = this.#handle(segment);
    handle.users++;
    try {
      return await work(await handle.file);
    } catch (error) {
      // The next use opens the file again: the disk may be available by then.
      if (this.#handles.get(segment) === handle) this.#handles.delete(segment);
      void this.#closeWhenIdle(handle);
      throw error;
    } finally {
      handle.users--;
      await this.#trim();
    }
  }

  /** Closes the file of `segment` if it is open. */
  async forget(segment: number): Promise<void> {
    const handle = this.#handles.get(segment);
    this.#handles.delete(segment);
    if (handle) await closeQuietly(handle);
  }

  /** Closes all files. Later calls of `use` reject. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const segment of [...this.#handles.keys()]) await this.forget(segment);
  }

  #handle(segment: number): Handle {
    const known = this.#handles.get(segment);
    this.#handles.delete(segment);
    const handle = known ?? { file: this.#openFile(segment), users: 0 };
    this.#handles.set(segment, handle);
    return handle;
  }

  /** Pieces are read from memory while they are new, so the page cache would hold a second copy of them. */
  #openFile(segment: number): Promise<OpenFile> {
    return this.#files.open(`${this.#folder}/${segmentName(segment)}`, { bypassesPageCache: true });
  }

  async #trim(): Promise<void> {
    for (const [segment, handle] of this.#handles) {
      if (this.#handles.size <= MAX_OPEN) return;
      if (handle.users === 0) await this.forget(segment);
    }
  }

  async #closeWhenIdle(handle: Handle): Promise<void> {
    if (handle.users <= 1) await closeQuietly(handle);
  }
}

/** Closes a file and ignores errors: a failed open or write was already reported by its use. */
async function closeQuietly(handle: Handle): Promise<void> {
  await handle.file.then((file) => file.close()).catch(() => {});
}
