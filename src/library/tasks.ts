import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { UnixSeconds } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { Task, Tasks } from "./contract.ts";

/** Work that goes on behind its request. */
export interface NewTask {
  readonly category: Task["category"];
  /** What is being done, for people: `Importing "channels.m3u"`. */
  readonly title: string;
  readonly actions: readonly string[];
  /** Does the work and resolves to what was done, for people; whatever it rejects with becomes the task's problem. */
  run(progress: Progress): Promise<string>;
}

/** How a task tells how far it is, and hears that nobody wants it any more. */
export interface Progress {
  /** `total` null where it is not known; `unit` as people count: `items`. */
  report(done: number, total: number | null, unit: string): void;
  readonly signal: AbortSignal;
}

/** Tasks, for who starts them. */
export interface TaskRunner extends Tasks {
  /** Starts at once and returns the task's id. Throws `too_many` where too many run. */
  start(task: NewTask): number;
  /** Tells all that run to end, and resolves when they have. */
  close(): Promise<void>;
}

/** Pages ask each second; a minute is enough for those that sleep meanwhile. */
const KEPT_SECONDS = 60;
/** A refresh of each playlist, and imports; beyond this somebody floods us. */
const MAX_RUNNING = 1_100;
/** Ended ones within that minute. */
const MAX_ENDED = 500;

/** No tasks yet. */
export function createTasks(parts: { readonly clock: Clock; readonly log: Log }): TaskRunner {
  return new RunningTasks(parts);
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
    this.#forget();
    const all = [...[...this.#running.values()].map(({ task }) => task), ...this.#ended];
    return category ? all.filter((task) => task.category === category) : all;
  }

  get(id: number): Task | undefined {
    this.#forget();
    return this.#running.get(id)?.task ?? this.#ended.find((task) => task.id === id);
  }

  start(started: NewTask): number {
    if (this.#abort.signal.aborted) throw new SluiceError("cancelled", "the engine is being stopped");
    if (this.#running.size >= MAX_RUNNING)
      throw new SluiceError("too_many", `at most ${MAX_RUNNING} tasks run at once; wait for some to end`);
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
    this.#abort.abort(new SluiceError("cancelled", "the engine is being stopped"));
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  async #run(started: NewTask, entry: { task: Task }): Promise<void> {
    const report: Progress["report"] = (done, total, unit) => {
      const amount = total === null ? counted(done) : `${counted(done)} of ${counted(total)}`;
      entry.task = { ...entry.task, message: `${started.title}: ${amount} ${unit}`, done, total };
    };
    try {
      const message = await started.run({ report, signal: this.#abort.signal });
      this.#end(entry.task, { state: "done", message });
    } catch (thrown) {
      // A SluiceError was meant for people; anything else is our fault, and its text may help to find it.
      if (!(thrown instanceof SluiceError)) this.#log.error(`${started.title}: ${messageOf(thrown)}`);
      this.#end(entry.task, { state: "failed", problem: messageOf(thrown) });
    }
  }

  #end(task: Task, outcome: Partial<Task>): void {
    this.#running.delete(task.id);
    this.#ended.push({ ...task, ...outcome, endedAt: this.#clock.unixSeconds() });
    this.#forget();
  }

  /** A clock that was set back keeps an ended task longer, not for ever: there is a bound on their number too. */
  #forget(): void {
    const since = (this.#clock.unixSeconds() - KEPT_SECONDS) as UnixSeconds;
    this.#ended = this.#ended.filter(({ endedAt }) => endedAt! > since).slice(-MAX_ENDED);
  }
}

/** A number as people read it: `12,000`. */
export function counted(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}
