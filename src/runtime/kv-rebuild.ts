import { MAX_COMMIT_BYTES, MAX_COMMIT_KEYS } from "../base/store-limits.ts";
import { Breather } from "./breather.ts";
import { markReady, removeDatabase, type StorePaths } from "./kv-paths.ts";
import { RecordFile, type StoredRecord, type StoreState } from "./kv-sqlite-file.ts";

/** Builds a new database next to the current one, in large transactions that are synced once at the end. */
export class Rebuild {
  readonly #paths: StorePaths;
  readonly #file: RecordFile;
  readonly #pending = new Map<string, string>();
  readonly #breather = new Breather();
  #pendingBytes = 0;

  private constructor(paths: StorePaths) {
    this.#paths = paths;
    this.#file = new RecordFile(paths.building, { mayCreate: true, busyMs: 0 });
    this.#file.run("PRAGMA synchronous = OFF");
  }

  /** Starts with an empty database and removes what an earlier attempt left. */
  static async begin(paths: StorePaths): Promise<Rebuild> {
    await removeDatabase(paths.building);
    return new Rebuild(paths);
  }

  get state(): StoreState {
    this.#flush();
    return this.#file.state();
  }

  has(key: string): boolean {
    return this.#pending.has(key) || this.#file.get(key) !== undefined;
  }

  async add({ key, value }: StoredRecord): Promise<void> {
    this.#pending.set(key, value);
    this.#pendingBytes += value.length;
    if (this.#pending.size < MAX_COMMIT_KEYS && this.#pendingBytes < MAX_COMMIT_BYTES) return;
    this.#flush();
    await this.#breather.breathe();
  }

  /** Makes the database durable and ready for {@link finishSwap}; `sequence` becomes its number of commits. */
  async finish(sequence: number): Promise<void> {
    this.#flush();
    this.#file.advanceSequence(sequence);
    this.#file.close();
    await markReady(this.#paths);
  }

  /** Deletes the unfinished database. */
  async discard(): Promise<void> {
    this.#file.close();
    await removeDatabase(this.#paths.building);
  }

  #flush(): void {
    if (this.#pending.size === 0) return;
    this.#file.commit({ check: [], set: this.#pending, delete: new Set() });
    this.#pending.clear();
    this.#pendingBytes = 0;
  }
}
