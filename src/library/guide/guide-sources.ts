import * as v from "valibot";
import { followRecords } from "../../async/records.ts";
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
/** What this engine has fetched, if other engines share the sources. */
const STATE_PREFIX = "guide/fetched/";

const NOTHING_FETCHED = {
  generation: 0,
  lastUpdate: 0 as UnixSeconds,
  nextUpdate: 0 as UnixSeconds,
  failures: 0,
  problem: null,
  etag: "",
};
const STATE_MEMBERS = new Set(Object.keys(NOTHING_FETCHED));
const stateSchema = v.pick(recordSchema, [
  "generation",
  "lastUpdate",
  "nextUpdate",
  "failures",
  "problem",
  "etag",
]);
type FetchState = Pick<SourceRecord, keyof typeof NOTHING_FETCHED>;

/** The stored sources of programme guides, by id. Changes are durable when they resolve. */
export class GuideSources {
  readonly #store: KeyValueStore;
  /** The records of this engine alone; undefined if no other engine uses the store. */
  readonly #own: KeyValueStore | undefined;
  readonly #records = new Map<number, SourceRecord>();

  private constructor(store: KeyValueStore, own: KeyValueStore | undefined) {
    this.#store = store;
    this.#own = store.watch ? own : undefined;
  }

  /** Loads the records; invalid ones are logged and skipped. */
  static async load(store: KeyValueStore, own: KeyValueStore | undefined, log: Log): Promise<GuideSources> {
    const sources = new GuideSources(store, own);
    for await (const [key, value] of store.list(PREFIX)) {
      const read = v.safeParse(recordSchema, value);
      if (read.success) await sources.#add(read.output as SourceRecord);
      else
        log.warn("skipped an invalid record of a programme guide", {
          key,
          reason: messageOf(read.issues[0]),
        });
    }
    return sources;
  }

  /** Follows the sources that other engines add, change and remove; calls `changed` after each. */
  follow(changed: () => void): void {
    followRecords(this.#store, PREFIX, (key, value) => {
      const read = v.safeParse(recordSchema, value);
      if (!read.success) this.#records.delete(Number(key.slice(PREFIX.length)));
      else {
        const known = this.#records.get(read.output.id);
        const state = known ? stateOf(known) : NOTHING_FETCHED;
        this.#records.set(read.output.id, { ...(read.output as SourceRecord), ...state });
      }
      changed();
    });
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
      ...NOTHING_FETCHED,
    };
    for (let id = record.id; ; id++) {
      const key = `${PREFIX}${id}`;
      const added = { ...record, id };
      // Another engine may have used the id.
      if (!(await this.#store.commit({ check: [[key, undefined]], set: [[key, added]] }))) continue;
      this.#records.set(id, added);
      return added;
    }
  }

  async change(id: number, change: Partial<Omit<SourceRecord, "id">>): Promise<void> {
    const record = this.#records.get(id);
    if (record === undefined) return;
    const changed = { ...record, ...change };
    if (this.#own) await this.#own.commit({ set: [[`${STATE_PREFIX}${id}`, stateOf(changed)]] });
    const isShared = Object.keys(change).some((name) => !STATE_MEMBERS.has(name));
    if (!this.#own || isShared) await this.#keep(changed);
    this.#records.set(id, changed);
  }

  async delete(id: number): Promise<void> {
    await this.#store.commit({ delete: [`${PREFIX}${id}`] });
    await this.#own?.commit({ delete: [`${STATE_PREFIX}${id}`] });
    this.#records.delete(id);
  }

  async #add(record: SourceRecord): Promise<void> {
    const kept = this.#own && v.safeParse(stateSchema, await this.#own.get(`${STATE_PREFIX}${record.id}`));
    const state = kept?.success ? (kept.output as FetchState) : NOTHING_FETCHED;
    this.#records.set(record.id, this.#own ? { ...record, ...state } : record);
  }

  async #keep(record: SourceRecord): Promise<void> {
    await this.#store.commit({ set: [[`${PREFIX}${record.id}`, record]] });
    this.#records.set(record.id, record);
  }
}

function stateOf(record: SourceRecord): FetchState {
  const { generation, lastUpdate, nextUpdate, failures, problem, etag } = record;
  return { generation, lastUpdate, nextUpdate, failures, problem, etag };
}
