import { MAX_COMMIT_BYTES, MAX_COMMIT_KEYS } from "../base/store-limits.ts";
import { Breather } from "./breather.ts";
import { markReady, type Places, removeDatabase } from "./kv-places.ts";
import { RecordFile, type StoredRecord, type StoreState } from "./kv-sqlite-file.ts";

/** A database that is made beside the one that is there, in large transactions that are synced once, at the end. */
export class Rebuild {
  readonly #places: Places;
  readonly #file: RecordFile;
  readonly #waiting = new Map<string, string>();
  readonly #breather = new Breather();
  #waitingBytes = 0;

  private constructor(places: Places) {
    this.#places = places;
    this.#file = new RecordFile(places.building, { mayCreate: true, busyMs: 0 });
    this.#file.run("PRAGMA synchronous = OFF");
  }

  /** Begins anew, whatever an earlier attempt left. */
  static async begin(places: Places): Promise<Rebuild> {
    await removeDatabase(places.building);
    return new Rebuild(places);
  }

  get state(): StoreState {
    this.#flush();
    return this.#file.state();
  }

  has(key: string): boolean {
    return this.#waiting.has(key) || this.#file.get(key) !== undefined;
  }

  async add({ key, value }: StoredRecord): Promise<void> {
    this.#waiting.set(key, value);
    this.#waitingBytes += value.length;
    if (this.#waiting.size < MAX_COMMIT_KEYS && this.#waitingBytes < MAX_COMMIT_BYTES) return;
    this.#flush();
    await this.#breather.breathe();
  }

  /** Makes it durable and ready to take the other's place; it goes on counting from `sequence`. */
  async finish(sequence: number): Promise<void> {
    this.#flush();
    this.#file.countOn(sequence);
    this.#file.close();
    await markReady(this.#places);
  }

  /** Gives it up. */
  async drop(): Promise<void> {
    this.#file.close();
    await removeDatabase(this.#places.building);
  }

  #flush(): void {
    if (this.#waiting.size === 0) return;
    this.#file.commit({ check: [], set: this.#waiting, delete: new Set() });
    this.#waiting.clear();
    this.#waitingBytes = 0;
  }
}
