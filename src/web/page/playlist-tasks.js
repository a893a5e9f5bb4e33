// @ts-check
import { ApiError, problemText } from "./api.js";
import { make } from "./playlist-dom.js";

/** How often running work is asked for. */
const POLL_MS = 1000;
/** Tasks that are looked at beside our own; more do not fit the page either. */
const MAX_TASKS = 5;
/** Failures that are shown until somebody closes them. */
const MAX_FAILURES = 3;

/**
 * @typedef {{ task_id: number, status: "running" | "done" | "failed", problem: string | null, msg: string, done: number,
 *   total: number | null }} Task
 */

/** Imports and updates that the engine does in the background: shown while one runs, asked for each second until then. */
export class PlaylistTasks {
  #api;
  #shown;
  #onOver;
  /** @type {Map<number, "running" | "over">} */
  #known = new Map();
  /** Those that were started here: whose failure is told nowhere else. @type {Set<number>} */
  #own = new Set();
  #isPolling = false;

  /**
   * @param {import("./api.js").EngineApi} api
   * @param {HTMLElement} shown
   * @param {() => void} onOver when one has ended, however it ended
   */
  constructor(api, shown, onOver) {
    this.#api = api;
    this.#shown = shown;
    this.#onOver = onOver;
  }

  /**
   * Watches what runs until nothing does.
   *
   * @param {number} [taskId] that was just started
   */
  async watch(taskId) {
    if (taskId !== undefined) {
      this.#known.set(taskId, "running");
      this.#own.add(taskId);
    }
    if (this.#isPolling) return;
    this.#isPolling = true;
    try {
      while (await this.#look()) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    } catch (error) {
      this.#shown.replaceChildren(failureLine(problemText(error)));
    } finally {
      this.#isPolling = false;
    }
  }

  /** Whether anything still runs. */
  async #look() {
    /** @type {{ id: number }[]} */
    const listed = await this.#api.call("get_background_tasks");
    const running = [...this.#known].filter(([, state]) => state === "running").map(([id]) => id);
    const unknown = listed.map(({ id }) => id).filter((id) => !this.#known.has(id));
    const tasks = await Promise.all([...running, ...unknown.slice(0, MAX_TASKS)].map((id) => this.#task(id)));
    // What is over and no longer listed never comes again.
    for (const [id, state] of this.#known)
      if (state === "over" && !listed.some((one) => one.id === id)) this.#known.delete(id);
    const bars = [];
    let isOver = false;
    for (const task of tasks) {
      this.#known.set(task.task_id, task.status === "running" ? "running" : "over");
      if (task.status === "running") bars.push(bar(task));
      else isOver = true;
      if (task.status === "running") continue;
      if (this.#own.delete(task.task_id) && task.status === "failed")
        this.#shown.append(failureLine(`${task.msg || task.problem}`));
    }
    const failures = [...this.#shown.querySelectorAll(".task-failure")].slice(-MAX_FAILURES);
    this.#shown.replaceChildren(...bars, ...failures);
    if (isOver) this.#onOver();
    // Not only what was asked for: one may have begun meanwhile.
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
      // Long over, and forgotten.
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
  line.append(make("button", { type: "button", class: "link", onclick: () => line.remove() }, "Close"));
  return line;
}
