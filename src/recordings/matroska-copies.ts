import { SerialQueue } from "../async/serial-queue.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import { MIN_FREE_BYTES } from "../base/free-disk.ts";
import type { Log } from "../base/log.ts";
import type { Files } from "../runtime/contract.ts";
import type { MatroskaCopy } from "./recording-contract.ts";
import { MAX_TEXT, type StoredRecording } from "./recording-record.ts";

/** Dependencies of {@link MatroskaCopies}. */
export interface CopiesDependencies {
  readonly files: Files;
  readonly log: Log;
  /** Bytes that recordings may still use in all. */
  freeBytes(): number;
}

/** A recording to copy. */
interface CopyJob {
  readonly stored: StoredRecording;
  readonly from: string;
  readonly to: string;
  /** Stores that the copy is complete. */
  complete(): Promise<void>;
}

/** A copy adds an index and heads to the media of its recording. */
const OVERHEAD = 1.02;

/** Makes copies of recordings in Matroska, one after another. */
export class MatroskaCopies {
  readonly #parts: CopiesDependencies;
  readonly #copies = new Map<number, MatroskaCopy>();
  readonly #running = new Map<number, { readonly abort: AbortController; readonly ended: Promise<void> }>();
  readonly #queue = new SerialQueue();

  constructor(parts: CopiesDependencies) {
    this.#parts = parts;
  }

  /** The copy of a recording; undefined if there is none. */
  get(id: number): MatroskaCopy | undefined {
    return this.#copies.get(id);
  }

  /** Bytes of all copies. */
  get bytes(): number {
    let all = 0;
    for (const { bytes } of this.#copies.values()) all += bytes;
    return all;
  }

  /** Finds the copy of an earlier run, or removes what a crash has left of it. */
  async load(id: number, path: string, isComplete: boolean): Promise<void> {
    const size = (await this.#parts.files.stat(path))?.size;
    if (size === undefined) return;
    if (isComplete) this.#copies.set(id, { state: "ready", share: 1, bytes: size, problem: null });
    else await this.#parts.files.remove(path);
  }

  /** Begins to make a copy; one that exists is kept. Rejects with `disk_full` if there is no space. */
  async start(job: CopyJob, sourceBytes: number): Promise<void> {
    const { id } = job.stored;
    const needed = OVERHEAD * sourceBytes;
    const free = await this.#parts.files.freeBytes(job.from);
    if (this.#copies.get(id)?.state === "ready" || this.#running.has(id)) return;
    if (needed > this.#parts.freeBytes())
      throw new SluiceError("disk_full", "the limit of all recordings leaves no space (--recordings-limit)");
    if (free !== undefined && free - needed < MIN_FREE_BYTES)
      throw new SluiceError("disk_full", "the disk has too little space for a copy");
    const abort = new AbortController();
    this.#copies.set(id, { state: "converting", share: 0, bytes: 0, problem: null });
    const ended = this.#queue.run(() => this.#run(job, sourceBytes, abort.signal));
    this.#running.set(id, { abort, ended });
  }

  /** Ends the work on a copy, and removes it. */
  async remove(id: number, path: string): Promise<void> {
    await this.#end(id);
    if (this.#copies.delete(id)) await this.#parts.files.remove(path);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((id) => this.#end(id)));
  }

  async #end(id: number): Promise<void> {
    const running = this.#running.get(id);
    running?.abort.abort(new SluiceError("cancelled", "the copy is not needed any more"));
    await running?.ended;
  }

  async #run({ stored, from, to, complete }: CopyJob, size: number, signal: AbortSignal): Promise<void> {
    const { files, log } = this.#parts;
    const { id, title, channel, start, programme } = stored;
    let bytes = 0;
    try {
      signal.throwIfAborted();
      const { tsToMatroska } = await import("../remux/ts-to-matroska.ts");
      const source = await files.open(from);
      const target = await files.open(to).catch(async (error: unknown) => {
        await source.close();
        throw error;
      });
      const read = async (range: { readonly start: number; readonly end: number }) => {
        const into = new Uint8Array(range.end - range.start);
        await source.read(range.start, into);
        return into;
      };
      try {
        await tsToMatroska({
          source: { size, read },
          tags: {
            ...{ title, channel, recordedAt: start, subtitle: programme?.subtitle ?? "" },
            ...{ description: programme?.description ?? "", episode: programme?.episode ?? "" },
          },
          async write(at, data) {
            await target.write(at, data);
            bytes = Math.max(bytes, at + data.length);
          },
          progress: (share) => this.#copies.set(id, { state: "converting", share, bytes, problem: null }),
          signal,
        });
        await target.sync();
      } finally {
        await Promise.all([source.close(), target.close()]);
      }
      await complete();
      this.#copies.set(id, { state: "ready", share: 1, bytes, problem: null });
    } catch (error) {
      await files.remove(to).catch(() => {});
      const problem = messageOf(error).slice(0, MAX_TEXT);
      this.#copies.set(id, { state: "failed", share: 0, bytes: 0, problem });
      if (!signal.aborted) log.warn("a recording cannot be copied to Matroska", { id, reason: problem });
    } finally {
      this.#running.delete(id);
    }
  }
}
