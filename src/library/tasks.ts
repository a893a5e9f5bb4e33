import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { UnixSeconds } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { Task, Tasks } from "./contract.ts";

/** Options of a task. */
interface NewTask {
  readonly category: Task["category"];
  /** Description for the user: `Importing "channels.m3u"`. */
  readonly title: string;
  readonly actions: readonly string[];
  /** Does the work and resolves to a summary for the user; the message of a rejection becomes the task's problem. */
  run(progress: Progress): Promise<string>;
}

/** Lets a task report its progress and learn that it is cancelled. */
export interface Progress {
  /** `total` is null if unknown; `unit` is shown to the user: `items`. */
  report(done: number, total: number | null, unit: string): void;
  readonly signal: AbortSignal;
}

/** Starts and lists tasks. */
export interface TaskRunner extends Tasks {
  /** Starts a task and returns its id. Throws `too_many` if too many tasks run. */
  start(task: NewTask): number;
  /** Aborts all running tasks and resolves when they have ended. */
  close(): Promise<void>;
}

/** Pages poll each second; a page in the background less often. */
const KEPT_SECONDS = 60;
/** Enough for a refresh of each playlist and the imports. */
const MAX_RUNNING = 1_100;
/** Limit of ended tasks that are kept. */
const MAX_ENDED = 500;

/** Creates a task runner. */
export function createTasks(dependencies: { readonly clock: Clock; readonly log: Log }): TaskRunner {
  return new RunningTasks(dependencies);
}

class RunningTasks implements TaskRunner {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #abort = new AbortController();
  readonly #running = new Map<number, { task: Task; readonly ended: Promise<void> }>();
  /** Oldest first. */
  #ended: Task[] = [];
  #lastId = 0;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock;
    this.#log = log;
  }

  list(category?: string): readonly Task[] {
    this.#dropExpired();
    const all = [...[...this.#running.values()].map(({ task }) => task), ...this.#ended];
    return category ? all.filter((task) => task.category === category) : all;
  }

  get(id: number): Task | undefined {
    this.#dropExpired();
    return this.#running.get(id)?.task ?? this.#ended.find((task) => task.id === id);
  }

  start(started: NewTask): number {
    if (this.#abort.signal.aborted) throw new SluiceError("cancelled", "the engine is stopping");
    if (this.#running.size >= MAX_RUNNING)
      throw new SluiceError("too_many", `task limit reached (${MAX_RUNNING}); wait until a task ends`);
    const id = ++this.#lastId;
    const task: Task = {
      id,
      category: started.category,
      message: started.title,
      state: "running",
      problem: null,
      done: 0,
      total: null,
      actions: started.actions,
      startedAt: this.#clock.unixSeconds(),
      endedAt: null,
    };
    const entry = { task, ended: Promise.resolve() };
    this.#running.set(id, entry);
    entry.ended = this.#run(started, entry);
    return id;
  }

  async close(): Promise<void> {
    this.#abort.abort(new SluiceError("cancelled", "the engine is stopping"));
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  async #run(started: NewTask, entry: { task: Task }): Promise<void> {
    const report: Progress["report"] = (done, total, unit) => {
      const amount = total === null ? formatCount(done) : `${formatCount(done)} of ${formatCount(total)}`;
      entry.task = { ...entry.task, message: `${started.title}: ${amount} ${unit}`, done, total };
    };
    try {
      const message = await started.run({ report, signal: this.#abort.signal });
      this.#end(entry.task, { state: "done", message });
    } catch (thrown) {
      // A SluiceError is meant for the user; any other error is a bug and is logged.
      if (!(thrown instanceof SluiceError)) this.#log.error(`${started.title}: ${messageOf(thrown)}`);
      this.#end(entry.task, { state: "failed", problem: messageOf(thrown) });
    }
  }

  #end(task: Task, outcome: Partial<Task>): void {
    this.#running.delete(task.id);
    this.#ended.push({ ...task, ...outcome, endedAt: this.#clock.unixSeconds() });
    this.#dropExpired();
  }

  /** If the clock was set back, ended tasks stay longer, but their number is limited too. */
  #dropExpired(): void {
    const since = (this.#clock.unixSeconds() - KEPT_SECONDS) as UnixSeconds;
    this.#ended = this.#ended.filter(({ endedAt }) => endedAt! > since).slice(-MAX_ENDED);
  }
}

/** Formats a number with thousands separators: `12,000`. */
export function formatCount(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}
