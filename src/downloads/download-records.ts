import * as v from "valibot";
import { SerialQueue } from "../async/serial-queue.ts";
import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { UnixSeconds } from "../base/time.ts";
import type { KeyValueStore } from "../runtime/contract.ts";

const PREFIX = "download/";
/** More ranges would not fit in a record of the store. */
export const MAX_RANGES = 2_000;
const MAX_NAME = 300;

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

const downloadRecord = v.object({
  infohash: v.pipe(
    v.string(),
    v.regex(/^[0-9a-f]{40}$/),
    v.transform((text) => text as Infohash),
  ),
  name: v.pipe(
    v.string(),
    v.transform((name) => name.slice(0, MAX_NAME)),
  ),
  addedAt: v.pipe(
    count,
    v.transform((seconds) => seconds as UnixSeconds),
  ),
  files: v.nullable(v.pipe(v.array(v.tuple([count, count])), v.maxLength(MAX_RANGES))),
  size: count,
  heldBytes: count,
  isPaused: v.boolean(),
  isComplete: v.boolean(),
  allowPrivateUrls: v.boolean(),
  limits: v.object({ upload: count, download: count }),
});

/** A download in the store. */
export type StoredDownload = Readonly<v.InferOutput<typeof downloadRecord>>;

/** The records of the downloads, with keys `download/<infohash>`. */
export class DownloadRecords {
  readonly #store: KeyValueStore;
  readonly #records = new Map<Infohash, StoredDownload>();
  readonly #writes = new SerialQueue();

  private constructor(store: KeyValueStore) {
    this.#store = store;
  }

  /** Reads all records. */
  static async load(store: KeyValueStore, log: Log): Promise<DownloadRecords> {
    const records = new DownloadRecords(store);
    for await (const [key, value] of store.list(PREFIX)) {
      const { success, output } = v.safeParse(downloadRecord, value);
      if (success && key === PREFIX + output.infohash) records.#records.set(output.infohash, output);
      else log.error("a record of a download cannot be read", { key });
    }
    return records;
  }

  /** Returns true if the user keeps this content. */
  has(infohash: Infohash): boolean {
    return this.#records.has(infohash);
  }

  get(infohash: Infohash): StoredDownload | undefined {
    return this.#records.get(infohash);
  }

  /** Returns a record. Throws `unknown_item` if there is none. */
  known(infohash: Infohash): StoredDownload {
    const stored = this.#records.get(infohash);
    if (stored === undefined)
      throw new SluiceError("unknown_item", `there is no download with the infohash ${infohash}`);
    return stored;
  }

  all(): readonly StoredDownload[] {
    return [...this.#records.values()];
  }

  /** Stores a record; durable when it resolves. */
  set(record: StoredDownload): Promise<void> {
    return this.#writes.run(() => this.#write(record));
  }

  /** Changes a record; durable when it resolves. Rejects with `unknown_item` if there is none. */
  update(infohash: Infohash, change: Partial<StoredDownload>): Promise<void> {
    return this.#writes.run(() => this.#write({ ...this.known(infohash), ...change }));
  }

  /** Deletes a record; durable when it resolves. */
  delete(infohash: Infohash): Promise<void> {
    return this.#writes.run(async () => {
      await this.#store.commit({ delete: [PREFIX + infohash] });
      this.#records.delete(infohash);
    });
  }

  async #write(record: StoredDownload): Promise<void> {
    const checked = v.parse(downloadRecord, record);
    await this.#store.commit({ set: [[PREFIX + checked.infohash, checked]] });
    this.#records.set(checked.infohash, checked);
  }
}

/** Converts indexes of files to ranges. */
export function rangesOf(indexes: Iterable<number>): [number, number][] {
  const ranges: [number, number][] = [];
  for (const index of [...new Set(indexes)].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last?.[1] === index - 1) last[1] = index;
    else ranges.push([index, index]);
  }
  return ranges;
}
