import type { Files, OpenFile } from "../runtime/contract.ts";
import { segmentName } from "./cache-layout.ts";

/** Segment files kept open: the one being written, and those that readers stand in. */
const MAX_OPEN = 8;

/** One open file and how many use it just now. */
interface Handle {
  readonly file: Promise<OpenFile>;
  users: number;
}

/** The segment files of one folder, opened on use; the least recently used is closed. */
export class OpenSegments {
  readonly #files: Files;
  readonly #folder: string;
  readonly #handles = new Map<number, Handle>();
  #isClosed = false;

  constructor(files: Files, folder: string) {
    this.#files = files;
    this.#folder = folder;
  }

  /** Does something with the file of `segment`, which is not closed meanwhile. */
  async use<T>(segment: number, work: (file: OpenFile) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new Error("the cache folder is closed");
    const handle = this.#handle(segment);
    handle.users++;
    try {
      return await work(await handle.file);
    } catch (error) {
      // The next use opens it anew: the disk may have come back.
      if (this.#handles.get(segment) === handle) this.#handles.delete(segment);
      void this.#closeWhenIdle(handle);
      throw error;
    } finally {
      handle.users--;
      await this.#trim();
    }
  }

  /** Closes the file of `segment`, where it is open. */
  async forget(segment: number): Promise<void> {
    const handle = this.#handles.get(segment);
    this.#handles.delete(segment);
    if (handle) await closeQuietly(handle);
  }

  /** Closes all files; from now on every use rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const segment of [...this.#handles.keys()]) await this.forget(segment);
  }

  #handle(segment: number): Handle {
    const known = this.#handles.get(segment);
    this.#handles.delete(segment);
    const handle = known ?? { file: this.#files.open(`${this.#folder}/${segmentName(segment)}`), users: 0 };
    this.#handles.set(segment, handle);
    return handle;
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

/** Closing a file that could not be opened or written has nothing to tell that its use has not told already. */
async function closeQuietly(handle: Handle): Promise<void> {
  await handle.file.then((file) => file.close()).catch(() => {});
}
