import * as v from "valibot";
import type { Instant } from "../base/time.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import { vettedAddress } from "./engine-address.ts";

/** The keys of the records of engines. */
export const ENGINE_PREFIX = "cluster/engine/";
/** An engine writes its record this often. */
export const BEAT_MS = 3_000;
/** An engine whose record has not changed for this time is dead: three beats, and time for one that is late. */
export const DEAD_MS = 10_000;
/** More engines than a site has; further ones are ignored. */
const MAX_ENGINES = 100;

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const engineRecord = v.object({
  /** Counts the writes of this record. */
  beat: count,
  address: v.pipe(v.string(), v.maxLength(200)),
  isDraining: v.boolean(),
  players: count,
  contents: count,
  version: v.pipe(v.string(), v.maxLength(40)),
});
export type EngineRecord = v.InferOutput<typeof engineRecord>;

/** An engine as this one sees it. */
export interface SeenEngine {
  readonly id: string;
  readonly record: EngineRecord;
  /** The record as it is in the store. */
  readonly raw: unknown;
  /** When this engine saw the record change, on its own clock: engines need no common time. */
  seenAt: Instant;
}

/** The records of all engines. */
export class EngineRecords {
  readonly #own: string;
  readonly #seen = new Map<string, SeenEngine>();

  /** `own` is the address of this engine. */
  constructor(own: string) {
    this.#own = own;
  }

  /** Reads all records. */
  async load(store: KeyValueStore, now: Instant): Promise<void> {
    for await (const [key, value] of store.list(ENGINE_PREFIX)) this.apply(key, value, now);
  }

  /** Applies a record that has changed; undefined if it was deleted. Returns true if the engine is gone. */
  apply(key: string, value: unknown, now: Instant): boolean {
    const id = key.slice(ENGINE_PREFIX.length);
    const read = v.safeParse(engineRecord, value);
    if (!read.success) return this.#seen.delete(id);
    if (!this.#seen.has(id) && this.#seen.size >= MAX_ENGINES) return false;
    const record = { ...read.output, address: vettedAddress(read.output.address, this.#own) ?? "" };
    this.#seen.set(id, { id, record, raw: value, seenAt: now });
    return false;
  }

  all(): readonly SeenEngine[] {
    return [...this.#seen.values()];
  }

  get(id: string): SeenEngine | undefined {
    return this.#seen.get(id);
  }

  isAlive(id: string, now: Instant): boolean {
    const seen = this.#seen.get(id);
    return seen !== undefined && now - seen.seenAt < DEAD_MS;
  }

  /** This engine could not see the others for a while: it gives all of them time for another beat. */
  forgive(now: Instant): void {
    for (const engine of this.#seen.values()) engine.seenAt = now;
  }
}
