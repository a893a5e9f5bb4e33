import * as v from "valibot";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { UnixSeconds } from "../../base/time.ts";
import type { KeyValueStore } from "../../runtime/contract.ts";

/** A stored source. */
const recordSchema = v.object({
  id: v.pipe(v.number(), v.integer(), v.minValue(1)),
  url: v.pipe(v.string(), v.maxLength(2_000)),
  origin: v.picklist(["user", "list"]),
  allowPrivateUrls: v.boolean(),
  /** True if the user removed a source that a list names. */
  isRemoved: v.boolean(),
  /** Number of the file with the programmes; 0: none yet. */
  generation: v.pipe(v.number(), v.integer(), v.minValue(0)),
  lastUpdate: v.number(),
  nextUpdate: v.number(),
  failures: v.number(),
  problem: v.nullable(v.string()),
  etag: v.string(),
});

export type SourceRecord = Omit<v.InferOutput<typeof recordSchema>, "lastUpdate" | "nextUpdate"> & {
  readonly lastUpdate: UnixSeconds;
  readonly nextUpdate: UnixSeconds;
};

const PREFIX = "guide/source/";

/** The stored sources of programme guides, by id. Changes are durable when they resolve. */
export class GuideSources {
  readonly #store: KeyValueStore;
  readonly #records = new Map<number, SourceRecord>();

  private constructor(store: KeyValueStore) {
    this.#store = store;
  }

  /** Loads the records; invalid ones are logged and skipped. */
  static async load(store: KeyValueStore, log: Log): Promise<GuideSources> {
    const sources = new GuideSources(store);
    for await (const [key, value] of store.list(PREFIX)) {
      const read = v.safeParse(recordSchema, value);
      if (read.success) sources.#records.set(read.output.id, read.output as SourceRecord);
      else
        log.warn("skipped an invalid record of a programme guide", {
          key,
          reason: messageOf(read.issues[0]),
        });
    }
    return sources;
  }

  all(): SourceRecord[] {
    return [...this.#records.values()];
  }

  get(id: number): SourceRecord | undefined {
    return this.#records.get(id);
  }

  async add(source: Pick<SourceRecord, "url" | "origin" | "allowPrivateUrls">): Promise<SourceRecord> {
    const record: SourceRecord = {
      ...source,
      id: Math.max(0, ...this.#records.keys()) + 1,
      isRemoved: false,
      generation: 0,
      lastUpdate: 0 as UnixSeconds,
      nextUpdate: 0 as UnixSeconds,
      failures: 0,
      problem: null,
      etag: "",
    };
    await this.#keep(record);
    return record;
  }

  async change(id: number, change: Partial<Omit<SourceRecord, "id">>): Promise<void> {
    const record = this.#records.get(id);
    if (record !== undefined) await this.#keep({ ...record, ...change });
  }

  async delete(id: number): Promise<void> {
    await this.#store.commit({ delete: [`${PREFIX}${id}`] });
    this.#records.delete(id);
  }

  async #keep(record: SourceRecord): Promise<void> {
    await this.#store.commit({ set: [[`${PREFIX}${record.id}`, record]] });
    this.#records.set(record.id, record);
  }
}
