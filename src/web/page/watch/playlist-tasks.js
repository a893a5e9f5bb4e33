// @ts-check
import { ApiError, problemText } from "../parts/api.js";
import { make } from "../parts/dom.js";
import { t } from "../parts/text.js";

const POLL_INTERVAL_MS = 1000;
/** The number of tasks shown besides those that this page started. */
const MAX_TASKS = 5;
/** The number of failures shown until the user closes them. */
const MAX_FAILURES = 3;

/**
 * @typedef {{ task_id: number, status: "running" | "done" | "failed", problem: string | null, msg: string, done: number,
 *   total: number | null }} Task
 */

/** Shows the imports and updates that the engine runs in the background, and polls them while any of them runs. */
export class PlaylistTasks {
  #api;
  #shown;
  #onEnd;
  /** @type {Map<number, "running" | "ended">} */
  #known = new Map();
  /** Tasks that this page started, whose failures are shown only here. @type {Set<number>} */
  #own = new Set();
  #isPolling = false;

  /**
   * @param {import("../parts/api.js").EngineApi} api
   * @param {HTMLElement} shown
   * @param {() => void} onEnd called when a task has ended or failed
   */
  constructor(api, shown, onEnd) {
    this.#api = api;
    this.#shown = shown;
    this.#onEnd = onEnd;
  }

  /**
   * Polls the tasks until none runs.
   *
   * @param {number} [taskId] a task that this page has just started
   */
  async watch(taskId) {
    if (taskId !== undefined) {
      this.#known.set(taskId, "running");
      this.#own.add(taskId);
    }
    if (this.#isPolling) return;
    this.#isPolling = true;
    try {
      while (await this.#poll()) await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
    } catch (error) {
      this.#shown.replaceChildren(failureLine(problemText(error)));
    } finally {
      this.#isPolling = false;
    }
  }

  /** Shows the current tasks. Returns whether any task runs. */
  async #poll() {
    /** @type {{ id: number }[]} */
    const listed = await this.#api.call("get_background_tasks");
    const running = [...this.#known].filter(([, state]) => state === "running").map(([id]) => id);
    const unknown = listed.map(({ id }) => id).filter((id) => !this.#known.has(id));
    const tasks = await Promise.all([...running, ...unknown.slice(0, MAX_TASKS)].map((id) => this.#task(id)));
    // An ended task that is no longer listed never appears again.
    for (const [id, state] of this.#known)
      if (state === "ended" && !listed.some((task) => task.id === id)) this.#known.delete(id);
    const bars = [];
    let hasEnded = false;
    for (const task of tasks) {
      this.#known.set(task.task_id, task.status === "running" ? "running" : "ended");
      if (task.status === "running") {
        bars.push(bar(task));
        continue;
      }
      hasEnded = true;
      if (this.#own.delete(task.task_id) && task.status === "failed")
        this.#shown.append(failureLine(`${task.msg || task.problem}`));
    }
    const failures = [...this.#shown.querySelectorAll(".task-failure")].slice(-MAX_FAILURES);
    this.#shown.replaceChildren(...bars, ...failures);
    if (hasEnded) this.#onEnd();
    // Another call of `watch` may have added a task meanwhile.
    return [...this.#known.values()].includes("running");
  }

  /**
   * @param {number} id
   * @returns {Promise<Task>}
   */
  async #task(id) {
    try {
      return await this.#api.call("get_playlist_task_status", { task_id: id });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // The engine no longer knows the task, so it ended long ago.
      return { task_id: id, status: "done", problem: null, msg: "", done: 0, total: null };
    }
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
