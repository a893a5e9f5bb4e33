import { onAbort } from "../async/abort.ts";
import { Slots } from "../async/slots.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { after, type Instant, type UnixSeconds } from "../base/time.ts";
import type { Lease, Leases } from "../cluster/cluster-contract.ts";
import type { ExternalRecord } from "./external-record.ts";
import type { ExternalStore } from "./external-store.ts";
import { type RefreshDependencies, type RefreshOutcome, refreshList } from "./refresh.ts";
import { jitterSeconds, nextAfterFailure, nextAfterSuccess, saneNext } from "./refresh-times.ts";
import type { Progress, TaskRunner } from "./tasks.ts";

/** Applies playlists of type `broadcast`: starts and stops broadcasts to match the list. */
export interface BroadcastRefresher {
  refresh(
    playlist: Pick<ExternalRecord, "id" | "url" | "login" | "password" | "allowPrivateUrls">,
    progress: Progress,
  ): Promise<string>;
  /** Stops the broadcasts of a deleted playlist. */
  forget(id: number): Promise<void>;
}

/** Dependencies of {@link ExternalRefresher}. */
export interface RefresherDependencies extends RefreshDependencies {
  readonly records: ExternalStore;
  readonly tasks: TaskRunner;
  readonly log: Log;
  readonly random: Random;
  readonly leases: Leases;
  /** Absent if broadcasting is unavailable. */
  readonly broadcasts?: BroadcastRefresher;
}

/** Concurrent refreshes; each may hold a list of 64 MiB. */
const MAX_CONCURRENT = 2;
/** Twice the limit of external playlists; each has at most one refresh. */
const MAX_QUEUED = 2_000;
/** Due times are checked at least this often, because the wall clock may be set and the machine may sleep. */
const CHECK_SECONDS = 60;
/** A list stays due if its next due time cannot be stored (full disk); this prevents an immediate repetition. */
const MIN_SECONDS_BETWEEN = 60;
const ACTIONS = ["reload_playlist", "reload_external_playlists"];
const MAX_SHOWN_NAME = 60;

interface Run {
  readonly taskId: number;
  readonly ended: Promise<boolean>;
  readonly abort: AbortController;
}

/** Refreshes external playlists when they are due or on request, at most two at a time. */
export class ExternalRefresher {
  readonly #dependencies: RefresherDependencies;
  readonly #slots = new Slots({
    limit: MAX_CONCURRENT,
    queueLimit: MAX_QUEUED,
    queueFull: () => new SluiceError("too_many", "too many refreshes are waiting; try again later"),
  });
  readonly #runs = new Map<number, Run>();
  /** Delay of the next refresh after its due time in seconds, by list. */
  readonly #jitter = new Map<number, number>();
  readonly #startedAt = new Map<number, Instant>();
  #cancelCheck: () => void = () => {};
  #isClosed = true;

  constructor(dependencies: RefresherDependencies) {
    this.#dependencies = dependencies;
  }

  /** Repeats interrupted refreshes, whatever their interval, and starts broadcasts again. */
  begin(): void {
    this.#isClosed = false;
    this.resume();
  }

  /** Starts the refreshes that were interrupted, here or on an engine that is gone, and those that are due. */
  resume(): void {
    if (this.#isClosed) return;
    const { records, broadcasts } = this.#dependencies;
    for (const { id, isPending, type } of records.all())
      if (isPending || (type === "broadcast" && broadcasts)) this.tryStart(id);
    // The other engine may have been the one that refreshed a list.
    this.#startedAt.clear();
    this.check();
  }

  /** Starts the refreshes that are due and schedules the next check. */
  check(): void {
    this.#cancelCheck();
    if (this.#isClosed) return;
    const { records, clock } = this.#dependencies;
    const now = clock.unixSeconds();
    let waitSeconds = CHECK_SECONDS;
    for (const record of [...records.all()]) {
      const { id, updateInterval, isGoing } = record;
      if (updateInterval === 0 || isGoing || this.#runs.has(id)) continue;
      const next = saneNext(record.nextUpdate, now, updateInterval);
      if (next !== record.nextUpdate) this.#keep(id, { nextUpdate: next });
      const due = next + (this.#jitter.get(id) ?? 0) - now;
      const left = Math.max(due, this.#restSeconds(id));
      if (left <= 0) this.tryStart(id);
      else waitSeconds = Math.min(waitSeconds, left);
    }
    this.#cancelCheck = clock.at(after(clock.now(), Math.max(waitSeconds, 1) * 1000), () => this.check());
  }

  /** Starts an automatic refresh; if it cannot start now, the next check tries again. */
  tryStart(id: number): void {
    try {
      this.start(id, false);
    } catch (thrown) {
      this.#dependencies.log.warn(`cannot refresh an external playlist now: ${messageOf(thrown)}`, { id });
    }
  }

  /** Starts a refresh, or joins the running one; returns its task id. `isForced` fetches the list even if unchanged. */
  start(id: number, isForced: boolean): number {
    const running = this.#runs.get(id);
    if (running) return running.taskId;
    const record = this.#dependencies.records.get(id)!;
    const abort = new AbortController();
    let ended: (hasSucceeded: boolean) => void = () => {};
    const end = new Promise<boolean>((resolve) => {
      ended = resolve;
    });
    const taskId = this.#dependencies.tasks.start({
      category: record.type,
      title: `Refreshing "${record.name.slice(0, MAX_SHOWN_NAME)}"`,
      actions: ACTIONS,
      run: async (progress) => {
        const stopListening = onAbort(progress.signal, () => abort.abort(progress.signal.reason));
        let hasSucceeded = false;
        try {
          const message = await this.#refresh(id, isForced, { ...progress, signal: abort.signal });
          hasSucceeded = true;
          return message;
        } finally {
          stopListening();
          this.#runs.delete(id);
          ended(hasSucceeded);
          this.check();
        }
      },
    });
    this.#runs.set(id, { taskId, ended: end, abort });
    this.#startedAt.set(id, this.#dependencies.clock.now());
    return taskId;
  }

  /** Starts one task that refreshes all playlists; returns its id. */
  startAll(): number {
    const { records, tasks } = this.#dependencies;
    const ids = [...records.all()].filter(({ isGoing }) => !isGoing).map(({ id }) => id);
    return tasks.start({
      category: "content",
      title: "Refreshing all external playlists",
      actions: ACTIONS,
      run: async ({ report }) => {
        let done = 0;
        const outcomes = await Promise.all(
          ids.map(async (id) => {
            if (records.get(id)) this.start(id, true);
            const hasSucceeded = await this.#runs.get(id)?.ended;
            report(++done, ids.length, "playlists");
            return hasSucceeded !== false;
          }),
        );
        const failed = outcomes.filter((hasSucceeded) => !hasSucceeded).length;
        return `Refreshed ${ids.length - failed} of ${ids.length} external playlists`;
      },
    });
  }

  /** Aborts a running refresh and resolves when it has ended. */
  async stop(id: number): Promise<void> {
    const run = this.#runs.get(id);
    run?.abort.abort(new SluiceError("cancelled", "the external playlist is being deleted"));
    await run?.ended;
    this.#jitter.delete(id);
    this.#startedAt.delete(id);
  }

  /** Starts no more refreshes. */
  close(): void {
    this.#isClosed = true;
    this.#cancelCheck();
  }

  async #refresh(id: number, isForced: boolean, progress: Progress): Promise<string> {
    const release = await this.#slots.take(progress.signal);
    try {
      const record = this.#dependencies.records.get(id);
      if (!record || record.isGoing)
        throw new SluiceError("unknown_external_playlist", "the external playlist has been deleted");
      return await this.#refreshAlone(record, isForced, progress);
    } finally {
      release();
    }
  }

  /** Refreshes unless another engine does, or has just done it. */
  async #refreshAlone(record: ExternalRecord, isForced: boolean, progress: Progress): Promise<string> {
    const { leases, clock, records } = this.#dependencies;
    const name = `"${record.name.slice(0, MAX_SHOWN_NAME)}"`;
    const lease = await leases.take(`refresh/${record.id}`);
    if (lease === undefined) return `Another engine refreshes ${name}`;
    let keepsLease = false;
    try {
      // The other engine may have ended between.
      const now = records.get(record.id) ?? record;
      const isDone = lease.fence !== undefined && now.lastUpdate > record.lastUpdate;
      const isEarly = lease.fence !== undefined && !now.isPending && now.nextUpdate > clock.unixSeconds();
      if (!isForced && record.type === "content" && (isDone || isEarly))
        return `Another engine has refreshed ${name}`;
      const message = await this.#refreshNow(now, isForced, progress, lease);
      // Its broadcasts stay on this engine.
      keepsLease = record.type === "broadcast";
      return message;
    } finally {
      if (!keepsLease) await lease.release().catch(() => {}); // It ends with the engine.
    }
  }

  async #refreshNow(
    record: ExternalRecord,
    isForced: boolean,
    progress: Progress,
    { fence }: Lease,
  ): Promise<string> {
    const { records, clock, random } = this.#dependencies;
    const { id } = record;
    let result: RefreshOutcome;
    let changes: Partial<ExternalRecord> = { isPending: false };
    try {
      const begin = (first: Partial<ExternalRecord>) => {
        changes = {};
        return records.change(id, first, fence);
      };
      result = await this.#work(record, { isForced, begin, fence }, progress);
    } catch (thrown) {
      // Aborted by the engine; the next start repeats it. Or another engine does it now.
      if (progress.signal.aborted || (thrown instanceof SluiceError && thrown.code === "cancelled"))
        throw thrown;
      await this.#fail(id, changes, messageOf(thrown), 0);
      throw thrown;
    }
    if (result.problem !== null) {
      await this.#fail(id, { ...changes, ...result.changes }, result.problem, result.retryAfterSeconds);
      throw new SluiceError("url_unreachable", result.problem);
    }
    const now = clock.unixSeconds();
    // The user may have changed the settings meanwhile.
    const settings = records.get(id) ?? record;
    const interval = settings.updateInterval;
    this.#jitter.set(id, jitterSeconds(interval, random));
    const done = {
      isPending: false,
      ...result.changes,
      ...(isSameList(record, settings) ? {} : { etag: "", lastModified: "" }),
      lastUpdate: now,
      nextUpdate: nextAfterSuccess(now, interval),
      problem: null,
      failures: 0,
    };
    await records.change(id, done, fence);
    return `Refreshed "${record.name.slice(0, MAX_SHOWN_NAME)}": ${result.message}`;
  }

  async #work(
    record: ExternalRecord,
    options: Parameters<typeof refreshList>[2],
    progress: Progress,
  ): Promise<RefreshOutcome> {
    if (record.type === "content") return refreshList(this.#dependencies, record, options, progress);
    const { broadcasts } = this.#dependencies;
    if (!broadcasts) throw new SluiceError("unsupported_content", "broadcasting is unavailable");
    const message = await broadcasts.refresh(record, progress);
    return { changes: {}, problem: null, retryAfterSeconds: 0, message };
  }

  async #fail(
    id: number,
    changes: Partial<ExternalRecord>,
    problem: string,
    retryAfterSeconds: number,
  ): Promise<void> {
    const { records, clock, random, log } = this.#dependencies;
    const record = records.get(id);
    if (!record) return;
    const failures = record.failures + 1;
    const now = clock.unixSeconds();
    this.#jitter.set(id, jitterSeconds(record.updateInterval, random));
    const nextUpdate = nextAfterFailure(now, record.updateInterval, failures, retryAfterSeconds);
    log.warn(`an external playlist could not be refreshed: ${problem}`, { id, failures });
    await records.change(id, { ...changes, problem: problem.slice(0, 1000), failures, nextUpdate });
  }

  /** Seconds until it may start automatically again. */
  #restSeconds(id: number): number {
    const startedAt = this.#startedAt.get(id);
    if (startedAt === undefined) return 0;
    return MIN_SECONDS_BETWEEN - (this.#dependencies.clock.now() - startedAt) / 1000;
  }

  #keep(id: number, changes: { readonly nextUpdate: UnixSeconds }): void {
    this.#dependencies.records.change(id, changes).catch((thrown) => {
      const problem = `the due time of an external playlist could not be stored: ${messageOf(thrown)}`;
      this.#dependencies.log.error(problem, { id });
    });
  }
}

/** Returns true if both settings fetch the same list for the same category. */
function isSameList(a: ExternalRecord, b: ExternalRecord): boolean {
  return a.category === b.category && a.login === b.login && a.password === b.password;
}
