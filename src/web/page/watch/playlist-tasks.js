// @ts-check
import { make } from "../parts/dom.js";
import { t } from "../parts/text.js";

/** The number of tasks shown besides those that this page started. */
const MAX_TASKS = 5;
/** The number of failures shown until the user closes them. */
const MAX_FAILURES = 3;

/** @typedef {import("../parts/live-data.js").Task} Task */

/** Shows the imports and updates that the engine runs in the background, and follows them while any of them runs. */
export class PlaylistTasks {
  #api;
  #live;
  #shown;
  #onEnd;
  /** Ended tasks when the tasks were read last; undefined before that. @type {Set<number> | undefined} */
  #ended;
  /** Tasks that this page started and whose end it has not seen, and whether they were listed. Only here their failures are shown.
   * @type {Map<number, boolean>} */
  #own = new Map();
  /** @type {(() => void) | undefined} */
  #release;

  /**
   * @param {import("../parts/api.js").EngineApi} api
   * @param {import("../parts/live-data.js").LiveData} live
   * @param {HTMLElement} shown
   * @param {() => void} onEnd called when a task has ended or failed
   */
  constructor(api, live, shown, onEnd) {
    this.#api = api;
    this.#live = live;
    this.#shown = shown;
    this.#onEnd = onEnd;
  }

  /**
   * Follows the tasks until none runs.
   *
   * @param {number} [taskId] a task that this page has just started
   */
  watch(taskId) {
    if (taskId !== undefined) this.#own.set(taskId, false);
    this.#release ??= this.#live.listen(this.#api, () => this.#update());
  }

  #update() {
    const tasks = this.#live.get("tasks");
    const failures = [...this.#shown.querySelectorAll(".task-failure")];
    if (tasks === undefined) {
      const { problem } = this.#live;
      if (problem !== "") this.#shown.replaceChildren(failureLine(problem));
      return;
    }
    for (const [id, wasListed] of this.#own) {
      const task = tasks.find((each) => each.task_id === id);
      if (task?.status === "failed") failures.push(failureLine(task.msg));
      if (task?.status === "running") this.#own.set(id, true);
      // A task that is no longer listed ended long ago; one that is not listed yet has just started.
      else if (task !== undefined || wasListed) this.#own.delete(id);
    }
    const running = tasks.filter(({ status }) => status === "running");
    const ended = tasks.filter(({ status }) => status !== "running").map(({ task_id: id }) => id);
    const before = this.#ended;
    const hasEnded = before !== undefined && ended.some((id) => !before.has(id));
    this.#ended = new Set(ended);
    const own = running.filter(({ task_id: id }) => this.#own.has(id));
    const others = running.filter(({ task_id: id }) => !this.#own.has(id));
    const bars = [...own, ...others.slice(0, MAX_TASKS)].map(bar);
    this.#shown.replaceChildren(...bars, ...failures.slice(-MAX_FAILURES));
    if (hasEnded) this.#onEnd();
    if (running.length > 0 || this.#own.size > 0) return;
    this.#release?.();
    this.#release = undefined;
  }
}

/** @param {Task} task */
function bar({ msg, done, total }) {
  const share = total ? { max: total, value: Math.min(done, total) } : {};
  return make(
    "div",
    { class: "task" },
    make("bdi", {}, msg),
    make("progress", { ...share, "aria-label": msg }),
  );
}

/** @param {string} text */
function failureLine(text) {
  const line = make("p", { class: "problem task-failure" }, make("bdi", {}, text.slice(0, 500)));
  line.append(make("button", { type: "button", class: "link", onclick: () => line.remove() }, t("Close")));
  return line;
}
