import * as v from "valibot";
import { followRecords } from "../async/records.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after, type Instant } from "../base/time.ts";
import type { Clock, KeyValueStore } from "../runtime/contract.ts";
import type { Cluster, ClusterEngine, Lease } from "./cluster-contract.ts";
import { ContentClaims } from "./content-claims.ts";
import { BEAT_MS, DEAD_MS, ENGINE_PREFIX, EngineRecords } from "./engine-records.ts";

const JOB_PREFIX = "cluster/job/";
/** How often the other engines are checked. */
const TICK_MS = 1_000;

const jobRecord = v.object({
  /** The engine that has the job; empty if it is free. */
  engine: v.pipe(v.string(), v.maxLength(64)),
  /** Grows each time the job is taken (fencing token). */
  term: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
});

/** What {@link openCluster} needs. */
export interface ClusterDependencies {
  readonly store: KeyValueStore;
  readonly clock: Clock;
  /** Unique for each run of an engine. */
  readonly id: string;
  /** The URL at which players and other engines reach this one; empty: it gets no players of others. */
  readonly address: string;
  readonly version: string;
  readonly log: Log;
}

/** What an engine does at present. */
interface EngineLoad {
  readonly players: number;
  /** The infohashes of the open contents. */
  readonly contents: readonly string[];
}

/** Joins the engines of a store that is shared. */
export async function openCluster(parts: ClusterDependencies): Promise<EngineCluster> {
  const cluster = new EngineCluster(parts);
  await cluster.begin();
  return cluster;
}

/** Whether engines use the store: waits until a record of an engine changes, or long enough to know that none does. */
export async function hasEngines(store: KeyValueStore, clock: Clock): Promise<boolean> {
  let isEmpty = true;
  for await (const _ of store.list(ENGINE_PREFIX)) isEmpty = false;
  if (isEmpty) return false;
  return new Promise((resolve) => {
    const cancel = clock.at(after(clock.now(), 2 * BEAT_MS), () => end(false));
    const release = store.watch?.(ENGINE_PREFIX, () => end(true));
    const end = (isAlive: boolean) => {
      cancel();
      release?.();
      resolve(isAlive);
    };
  });
}

/** One engine of those that share a store; see {@link Cluster}. */
export class EngineCluster implements Cluster {
  readonly #parts: ClusterDependencies;
  readonly #records: EngineRecords;
  readonly #claims: ContentClaims;
  readonly #held = new Map<string, { readonly value: unknown; readonly lost: AbortController }>();
  readonly #taking = new Set<string>();
  #gone: (() => void)[] = [];
  #load: () => EngineLoad = () => ({ players: 0, contents: [] });
  #beat = 0;
  #beatAt: Instant;
  #isBeating = false;
  #isDraining = false;
  #isClosed = false;
  #cancelTick: () => void = () => {};

  constructor(parts: ClusterDependencies) {
    this.#parts = parts;
    this.#records = new EngineRecords(parts.address);
    this.#beatAt = parts.clock.now();
    this.#claims = new ContentClaims(parts.store, parts.clock, parts.id);
  }

  async begin(): Promise<void> {
    const { store, clock } = this.#parts;
    await this.#records.load(store, clock.now());
    followRecords(store, ENGINE_PREFIX, (key, value) => {
      if (this.#records.apply(key, value, clock.now())) this.#tellGone();
    });
    followRecords(store, JOB_PREFIX, (key, value) => this.#jobChanged(key, value));
    await this.#writeBeat();
    this.#schedule();
  }

  /** What this engine does from now on; known only after the engine has opened. */
  measure(load: () => EngineLoad): void {
    this.#load = load;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  engines(): readonly ClusterEngine[] {
    const { id, address, version, clock } = this.#parts;
    const { players, contents } = this.#load();
    const self = { id, address, version, players, contents: contents.length, isDraining: this.#isDraining };
    const others = this.#records.all().filter((engine) => this.#records.isAlive(engine.id, clock.now()));
    return [
      { ...self, isThis: true },
      ...others.map((other) => ({ ...other.record, id: other.id, isThis: false })),
    ];
  }

  async place(content: string): Promise<string | undefined> {
    const [self, ...others] = this.engines();
    const usable = others.filter(({ address, isDraining }) => address !== "" && !isDraining);
    const all = this.#isDraining && usable.length > 0 ? usable : [self!, ...usable];
    const id = await this.#claims.place(content, all).catch((error: unknown) => {
      // Without the store the player is served here.
      this.#parts.log.debug("cannot place content in the cluster", { reason: messageOf(error) });
      return self!.id;
    });
    return all.find((engine) => engine.id === id && !engine.isThis)?.address;
  }

  async take(job: string): Promise<Lease | undefined> {
    const { store, id, clock } = this.#parts;
    const key = JOB_PREFIX + job;
    if (this.#held.has(job) || this.#taking.has(job) || this.#isClosed) return undefined;
    this.#taking.add(job);
    try {
      const before = await store.get(key);
      const read = v.safeParse(jobRecord, before);
      const holder = read.success ? read.output.engine : "";
      const isFree = holder === "" || holder === id;
      if (!isFree && this.#records.isAlive(holder, clock.now())) return undefined;
      const value = { engine: id, term: (read.success ? read.output.term : 0) + 1 };
      // A dead engine whose record is back by now keeps its jobs.
      const alive = [ENGINE_PREFIX + holder, this.#records.get(holder)?.raw] as const;
      const check = [[key, before] as const, ...(isFree ? [] : [alive])];
      if (!(await store.commit({ check, set: [[key, value]] }))) return undefined;
      const lost = new AbortController();
      this.#held.set(job, { value, lost });
      return { fence: [key, value], lost: lost.signal, release: () => this.#release(job) };
    } finally {
      this.#taking.delete(job);
    }
  }

  onEngineGone(listener: () => void): void {
    this.#gone.push(listener);
  }

  async drain(): Promise<void> {
    this.#isDraining = true;
    await this.#writeBeat();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTick();
    this.#gone = [];
    const { store, id, log } = this.#parts;
    try {
      for (const job of [...this.#held.keys()]) await this.#release(job);
      await this.#claims.release();
      await store.commit({ delete: [ENGINE_PREFIX + id] });
    } catch (error) {
      log.warn("other engines will notice later that this one has stopped", { reason: messageOf(error) });
    }
  }

  async #release(job: string): Promise<void> {
    const held = this.#held.get(job);
    if (held === undefined) return;
    this.#held.delete(job);
    const { term } = held.value as v.InferOutput<typeof jobRecord>;
    const key = JOB_PREFIX + job;
    await this.#parts.store.commit({ check: [[key, held.value]], set: [[key, { engine: "", term }]] });
  }

  #jobChanged(key: string, value: unknown): void {
    const job = key.slice(JOB_PREFIX.length);
    const held = this.#held.get(job);
    if (held === undefined || JSON.stringify(held.value) === JSON.stringify(value)) return;
    this.#held.delete(job);
    this.#parts.log.warn("another engine has taken a job over", { job });
    held.lost.abort();
  }

  #schedule(): void {
    const { clock } = this.#parts;
    this.#cancelTick = clock.at(after(clock.now(), TICK_MS), () => {
      if (this.#isClosed) return;
      void this.#tick().catch((error: unknown) =>
        this.#parts.log.debug("cannot write to the cluster", { reason: messageOf(error) }),
      );
      this.#schedule();
    });
  }

  async #tick(): Promise<void> {
    const { clock, store } = this.#parts;
    if (this.#isBeating) return;
    if (clock.now() - this.#beatAt >= BEAT_MS) await this.#writeBeat();
    for (const { id, raw } of this.#records.all()) {
      if (this.#records.isAlive(id, clock.now())) continue;
      const key = ENGINE_PREFIX + id;
      if (!(await store.commit({ check: [[key, raw]], delete: [key] }))) continue;
      this.#parts.log.warn("an engine of the cluster has died", { engine: id });
      this.#records.apply(key, undefined, clock.now());
      this.#tellGone();
    }
    await this.#claims.tidy(this.#load().contents, (id) => this.#records.get(id) !== undefined);
  }

  async #writeBeat(): Promise<void> {
    const { clock, store, id, address, version } = this.#parts;
    const { players, contents } = this.#load();
    const record = { address, version, players, contents: contents.length, isDraining: this.#isDraining };
    this.#isBeating = true;
    this.#beatAt = clock.now();
    try {
      await store.commit({ set: [[ENGINE_PREFIX + id, { ...record, beat: ++this.#beat }]] });
    } catch (error) {
      this.#records.forgive(clock.now());
      throw error;
    } finally {
      // While the store does not answer this engine, it cannot see the beats of others.
      if (clock.now() - this.#beatAt > DEAD_MS / 2) this.#records.forgive(clock.now());
      this.#isBeating = false;
    }
  }

  #tellGone(): void {
    for (const listener of this.#gone) listener();
  }
}
