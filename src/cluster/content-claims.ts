import * as v from "valibot";
import type { Instant } from "../base/time.ts";
import type { Clock, KeyValueStore } from "../runtime/contract.ts";
import type { ClusterEngine } from "./cluster-contract.ts";

const CONTENT_PREFIX = "cluster/content/";
/** Contents that one engine has claimed at a time; further ones are played where they are requested. */
const MAX_CLAIMS = 5_000;
const MAX_CONTENT = 200;
/** A claim without an open transfer ends after this time: content takes a while to start, and players come back. */
const UNUSED_MS = 120_000;
const TIDY_MS = 30_000;
const MAX_TRIES = 5;
/** Claims that an engine makes in this time; further contents are played where they are requested, so that no client can fill the store. */
const MAX_NEW = 250;
/** Claims that an engine removes in this time: those that several others have made for it. */
const MAX_REMOVED = 2_000;

const claimRecord = v.object({ engine: v.pipe(v.string(), v.maxLength(64)) });

/** Which engine has which content: records that an engine writes when a player asks for content that no engine has. */
export class ContentClaims {
  readonly #store: KeyValueStore;
  readonly #clock: Clock;
  readonly #id: string;
  /** The claims of this engine, with the times of their last requests. */
  readonly #own = new Map<string, Instant>();
  /** Contents that were sent to an engine since its load changed, so that a rush of players does not go to one engine. */
  readonly #sent = new Map<string, { readonly load: number; count: number }>();
  #tidiedAt: Instant;
  /** Claims that were made since then. */
  #made = 0;

  constructor(store: KeyValueStore, clock: Clock, id: string) {
    this.#store = store;
    this.#clock = clock;
    this.#id = id;
    this.#tidiedAt = clock.now();
  }

  /** Returns the engine that plays the content, one of `engines`. Claims it if none of them has it. Rejects if the store cannot be written. */
  async place(content: string, engines: readonly ClusterEngine[]): Promise<string> {
    if (content.length > MAX_CONTENT) return this.#id;
    const key = CONTENT_PREFIX + content;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const before = await this.#store.get(key);
      const holder = holderOf(before);
      if (holder !== undefined && engines.some(({ id }) => id === holder)) return this.#used(content, holder);
      const chosen = this.#leastLoaded(engines);
      if (this.#made >= MAX_NEW || (chosen.isThis && this.#own.size >= MAX_CLAIMS)) return this.#id;
      this.#made++;
      if (await this.#store.commit({ check: [[key, before]], set: [[key, { engine: chosen.id }]] }))
        return this.#used(content, chosen.id);
    }
    return this.#id;
  }

  /** Removes claims that are not used any more, and those of engines that are gone; at most every 30 s. */
  async tidy(open: readonly string[], isKnown: (engine: string) => boolean): Promise<void> {
    const now = this.#clock.now();
    if (now - this.#tidiedAt < TIDY_MS) return;
    this.#tidiedAt = now;
    this.#made = 0;
    const contents = new Set(open);
    const claimed = new Set<string>();
    let removed = 0;
    for await (const [key, value] of this.#store.list(CONTENT_PREFIX)) {
      const content = key.slice(CONTENT_PREFIX.length);
      const holder = holderOf(value);
      const isOwn = holder === this.#id;
      if (isOwn) claimed.add(content);
      // A claim that another engine has made for this one counts from now.
      if (isOwn && !this.#own.has(content) && this.#own.size < MAX_CLAIMS) this.#own.set(content, now);
      const usedAt = this.#own.get(content);
      const isUsed = contents.has(content) || (usedAt !== undefined && now - usedAt < UNUSED_MS);
      if (isOwn ? isUsed : holder !== undefined && isKnown(holder)) continue;
      await this.#store.commit({ check: [[key, value]], delete: [key] });
      if (isOwn) this.#own.delete(content);
      if (++removed >= MAX_REMOVED) return;
    }
    // Other engines have removed these: they took this one for dead.
    for (const content of this.#own.keys()) if (!claimed.has(content)) this.#own.delete(content);
  }

  /** Removes the claims of this engine. */
  async release(): Promise<void> {
    for await (const [key, value] of this.#store.list(CONTENT_PREFIX))
      if (holderOf(value) === this.#id) await this.#store.commit({ check: [[key, value]], delete: [key] });
  }

  #used(content: string, engine: string): string {
    if (engine === this.#id) this.#own.set(content, this.#clock.now());
    return engine;
  }

  /** The engine with the fewest players and contents; of equal ones the first. */
  #leastLoaded(engines: readonly ClusterEngine[]): ClusterEngine {
    const loadOf = ({ id, players, contents }: ClusterEngine) => {
      const load = players + contents;
      const sent = this.#sent.get(id);
      if (sent?.load === load) return load + sent.count;
      this.#sent.set(id, { load, count: 0 });
      return load;
    };
    for (const id of this.#sent.keys())
      if (!engines.some((engine) => engine.id === id)) this.#sent.delete(id);
    const loads = engines.map((engine) => ({ engine, load: loadOf(engine) }));
    const chosen = loads.sort((a, b) => a.load - b.load)[0]!.engine;
    this.#sent.get(chosen.id)!.count++;
    return chosen;
  }
}

function holderOf(value: unknown): string | undefined {
  const read = v.safeParse(claimRecord, value);
  return read.success ? read.output.engine : undefined;
}
