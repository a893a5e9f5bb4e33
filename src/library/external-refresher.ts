import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { after, type Instant, type UnixSeconds } from "../base/time.ts";
import type { ExternalRecord } from "./external-record.ts";
import type { ExternalStore } from "./external-store.ts";
import { type RefreshOutcome, type RefreshParts, refreshList } from "./refresh.ts";
import { jitterSeconds, nextAfterFailure, nextAfterSuccess, saneNext } from "./refresh-times.ts";
import { createSlots } from "./slots.ts";
import type { Progress, TaskRunner } from "./tasks.ts";

/** Makes what we broadcast what a list says: playlists of type `broadcast`. */
export interface BroadcastRefresher {
  refresh(
    playlist: Pick<ExternalRecord, "id" | "url" | "login" | "password" | "allowPrivateUrls">,
    progress: Progress,
  ): Promise<string>;
  /** The playlist is no more: stops what came from it. */
  forget(id: number): Promise<void>;
}

/** What refreshes need beside the work itself. */
export interface RefresherParts extends RefreshParts {
  readonly records: ExternalStore;
  readonly tasks: TaskRunner;
  readonly log: Log;
  readonly random: Random;
  /** Absent where broadcasting is not there. */
  readonly broadcasts?: BroadcastRefresher;
}

/** Each may hold a list of 64 MiB. */
const MAX_AT_ONCE = 2;
/** The wall clock may be set, and a machine may sleep: nothing is waited for longer than this without a look at it. */
const LOOK_SECONDS = 60;
/** A list whose due time cannot be kept (a full disk) stays due; it is not begun again at once. */
const MIN_SECONDS_BETWEEN = 60;
const ACTIONS = ["reload_playlist", "reload_external_playlists"];
const MAX_SHOWN_NAME = 60;

interface Run {
  readonly taskId: number;
  readonly ended: Promise<boolean>;
  readonly abort: AbortController;
}

/** Refreshes external playlists, when they are due and when somebody asks, a few at once, each once at a time. */
export class ExternalRefresher {
  readonly #parts: RefresherParts;
  readonly #slots = createSlots(MAX_AT_ONCE);
  readonly #runs = new Map<number, Run>();
  /** Seconds behind the due time, for each list, until its next refresh. */
  readonly #jitter = new Map<number, number>();
  readonly #startedAt = new Map<number, Instant>();
  #cancelLook: () => void = () => {};
  #isClosed = true;

  constructor(parts: RefresherParts) {
    this.#parts = parts;
  }

  /** Refreshes that were interrupted are begun again, whatever their interval; so is what was broadcast. */
  begin(): void {
    this.#isClosed = false;
    const { records, broadcasts } = this.#parts;
    for (const { id, isPending, type } of records.all())
      if (isPending || (type === "broadcast" && broadcasts)) this.startWherePossible(id);
    this.look();
  }

  /** Starts what is due, and sees to it that the next due time is not missed. */
  look(): void {
    this.#cancelLook();
    if (this.#isClosed) return;
    const { records, clock } = this.#parts;
    const now = clock.unixSeconds();
    let waitSeconds = LOOK_SECONDS;
    for (const record of [...records.all()]) {
      const { id, updateInterval, isGoing } = record;
      if (updateInterval === 0 || isGoing || this.#runs.has(id)) continue;
      const next = saneNext(record.nextUpdate, now, updateInterval);
      if (next !== record.nextUpdate) this.#keep(id, { nextUpdate: next });
      const due = next + (this.#jitter.get(id) ?? 0) - now;
      const left = Math.max(due, this.#restSeconds(id));
      if (left <= 0) this.startWherePossible(id);
      else waitSeconds = Math.min(waitSeconds, left);
    }
    this.#cancelLook = clock.at(after(clock.now(), Math.max(waitSeconds, 1) * 1000), () => this.look());
  }

  /** Starts a refresh by itself; where that cannot be now, the next look tries again. */
  startWherePossible(id: number): void {
    try {
      this.start(id, false);
    } catch (thrown) {
      this.#parts.log.warn(`an external playlist is not refreshed now: ${messageOf(thrown)}`, { id });
    }
  }

  /** Starts a refresh, or joins the one that runs; returns its task. */
  start(id: number, isForced: boolean): number {
    const running = this.#runs.get(id);
    if (running) return running.taskId;
    const record = this.#parts.records.get(id)!;
    const abort = new AbortController();
    let ended: (isWell: boolean) => void = () => {};
    const end = new Promise<boolean>((resolve) => {
      ended = resolve;
    });
    const taskId = this.#parts.tasks.start({
      category: record.type,
      title: `Refreshing "${record.name.slice(0, MAX_SHOWN_NAME)}"`,
      actions: ACTIONS,
      run: async (progress) => {
        const stop = () => abort.abort(progress.signal.reason);
        progress.signal.addEventListener("abort", stop, { once: true });
        let isWell = false;
        try {
          const message = await this.#refresh(id, isForced, { ...progress, signal: abort.signal });
          isWell = true;
          return message;
        } finally {
          progress.signal.removeEventListener("abort", stop);
          this.#finish(id, () => ended(isWell));
        }
      },
    });
    this.#runs.set(id, { taskId, ended: end, abort });
    this.#startedAt.set(id, this.#parts.clock.now());
    return taskId;
  }

  /** One task that waits for the refreshes of all. */
  startAll(): number {
    const { records, tasks } = this.#parts;
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
            const isWell = await this.#runs.get(id)?.ended;
            report(++done, ids.length, "playlists");
            return isWell !== false;
          }),
        );
        const failed = outcomes.filter((isWell) => !isWell).length;
        return `Refreshed ${ids.length - failed} of ${ids.length} external playlists`;
      },
    });
  }

  /** Ends the refresh that runs, and resolves when it has ended. */
  async stop(id: number): Promise<void> {
    const run = this.#runs.get(id);
    run?.abort.abort(new SluiceError("cancelled", "the external playlist is being deleted"));
    await run?.ended;
    this.#jitter.delete(id);
    this.#startedAt.delete(id);
  }

  /** Nothing starts any more. */
  close(): void {
    this.#isClosed = true;
    this.#cancelLook();
  }

  async #refresh(id: number, isForced: boolean, progress: Progress): Promise<string> {
    const giveBack = await this.#slots.take(progress.signal);
    try {
      const record = this.#parts.records.get(id);
      if (!record || record.isGoing)
        throw new SluiceError("unknown_external_playlist", "it has been deleted");
      return await this.#refreshNow(record, isForced, progress);
    } finally {
      giveBack();
    }
  }

  async #refreshNow(record: ExternalRecord, isForced: boolean, progress: Progress): Promise<string> {
    const { records, clock, random } = this.#parts;
    const { id } = record;
    let result: RefreshOutcome;
    let changes: Partial<ExternalRecord> = { isPending: false };
    try {
      const begin = (first: Partial<ExternalRecord>) => {
        changes = {};
        return records.change(id, first);
      };
      result = await this.#work(record, { isForced, begin }, progress);
    } catch (thrown) {
      // Stopped by us: the next start goes on.
      if (progress.signal.aborted) throw thrown;
      await this.#fail(id, changes, messageOf(thrown), 0);
      throw thrown;
    }
    if (result.problem !== null) {
      await this.#fail(id, { ...changes, ...result.changes }, result.problem, result.retryAfterSeconds);
      throw new SluiceError("url_unreachable", result.problem);
    }
    const now = clock.unixSeconds();
    // The settings may have been changed meanwhile.
    const settings = records.get(id) ?? record;
    const interval = settings.updateInterval;
    this.#jitter.set(id, jitterSeconds(interval, random));
    await records.change(id, {
      isPending: false,
      ...result.changes,
      ...(isSameList(record, settings) ? {} : { etag: "", lastModified: "" }),
      lastUpdate: now,
      nextUpdate: nextAfterSuccess(now, interval),
      problem: null,
      failures: 0,
    });
    return `Refreshed "${record.name.slice(0, MAX_SHOWN_NAME)}": ${result.message}`;
  }

  async #work(
    record: ExternalRecord,
    way: Parameters<typeof refreshList>[2],
    progress: Progress,
  ): Promise<RefreshOutcome> {
    if (record.type === "content") return refreshList(this.#parts, record, way, progress);
    const { broadcasts } = this.#parts;
    if (!broadcasts) throw new SluiceError("unsupported_content", "broadcasting is not there yet");
    const message = await broadcasts.refresh(record, progress);
    return { changes: {}, problem: null, retryAfterSeconds: 0, message };
  }

  async #fail(
    id: number,
    changes: Partial<ExternalRecord>,
    problem: string,
    retryAfterSeconds: number,
  ): Promise<void> {
    const { records, clock, random, log } = this.#parts;
    const record = records.get(id);
    if (!record) return;
    const failures = record.failures + 1;
    const now = clock.unixSeconds();
    this.#jitter.set(id, jitterSeconds(record.updateInterval, random));
    const nextUpdate = nextAfterFailure(now, record.updateInterval, failures, retryAfterSeconds);
    log.warn(`an external playlist could not be refreshed: ${problem}`, { id, failures });
    await records.change(id, { ...changes, problem: problem.slice(0, 1000), failures, nextUpdate });
  }

  /** Seconds until it may start by itself again. */
  #restSeconds(id: number): number {
    const startedAt = this.#startedAt.get(id);
    if (startedAt === undefined) return 0;
    return MIN_SECONDS_BETWEEN - (this.#parts.clock.now() - startedAt) / 1000;
  }

  #finish(id: number, tell: () => void): void {
    this.#runs.delete(id);
    tell();
    this.look();
  }

  #keep(id: number, changes: { readonly nextUpdate: UnixSeconds }): void {
    this.#parts.records.change(id, changes).catch((thrown) => {
      this.#parts.log.error(`the due time of an external playlist is not kept: ${messageOf(thrown)}`, { id });
    });
  }
}

/** Whether what was fetched with these settings is what the others would bring. */
function isSameList(a: ExternalRecord, b: ExternalRecord): boolean {
  return a.category === b.category && a.login === b.login && a.password === b.password;
}
