// @ts-check
import { ownPath } from "./place.js";
import { t } from "./text.js";

/**
 * The live data of the engine: one connection for the whole page, to `api/events` for the operator. A page without the operator's rights reads
 * the events of the session that it plays, and those of the devices while it shows them. Only if another engine of the cluster plays the
 * session, an operator's page has two connections.
 *
 * @typedef {import("./api.js").EngineApi} EngineApi
 * @typedef {[at: number, down: number, up: number, transfers: Record<string, [down: number, up: number]>]} Speeds
 * @typedef {{ number: number, atMs: number, level: "error" | "warn" | "info" | "debug", part: string, text: string }} LogLine
 * @typedef {{
 *   infohash: string, key: string, player: string, address: string | null, output: string,
 *   status: "starting" | "playing" | "failed", problem: string | null, buffering: string | null, progress: number, held: number,
 *   is_live: boolean, is_played: boolean, is_converted: boolean, started_at: number, behind_live: number | null,
 *   window: number | null
 * }} SessionFigures
 * @typedef {{
 *   infohash: string, name: string, kind: "files" | "live" | "own" | "web", users: number, size: number, held: number,
 *   peers: number, candidates: number, seeds: number, web_seeds: number, speed_down: number, speed_up: number,
 *   downloaded: number, uploaded: number, wasted: number, download_limit: number, upload_limit: number, origins: Record<string, number>,
 *   nodes: { client: string, up: number, down: number }[]
 * }} TransferFigures
 * @typedef {{ infohash: string, name: string, added_at: number, problem: string | null, size: number, held: number,
 *   state: "waiting" | "downloading" | "complete" | "paused" | "failed", download_limit: number, upload_limit: number }} DownloadFigures
 * @typedef {{ task_id: number, status: "running" | "done" | "failed", problem: string | null, msg: string, actions: string[], done: number,
 *   total: number | null }} Task
 * @typedef {{ version: string, speed_down: number, speed_up: number,
 *   cache: { free: number, limit: number, active: number, inactive: number, memory: number } }} Status
 * @typedef {{ status: Status, sessions: SessionFigures[], transfers: TransferFigures[], broadcasts: any[], relays: any[], recordings: any[], downloads: DownloadFigures[],
 *   tasks: Task[], speeds: Speeds[], log: LogLine[] }} Sections
 * @typedef {{ api: EngineApi, live: LiveData }} LiveContext
 * @typedef {any} SessionEvent what the stat URL of a session returns, or why there is no such session any more: `{ ended: string }`
 * @typedef {"session" | "players" | "device"} Topic an event that is sent on request
 * @typedef {{ path: string, query: [name: string, value: string] | undefined, changed: (event: any) => void,
 *   failed?: (problem: string) => void }} Followed `path`: its own connection; `query`: asks for it in that of the operator, if that engine has it
 */

/** As many as the engine keeps. */
const MAX_SPEEDS = 720;
const MAX_LOG_LINES = 2_000;
/** The engine sends something at least every five seconds. */
const SILENCE_MS = 15_000;
const RETRY_MS = 2_000;

const EVENTS = "api/events";
const PLAYERS = "api/players/events";
/** The events of the session with this stat URL, which this engine itself plays: the name of the session. */
const OWN_SESSION = /^ace\/stat\/([0-9a-f]+\/[0-9a-f]+)\/events$/;

/** The live data of the page. Connections are open while something listens. */
export class LiveData {
  /** @type {EngineApi | undefined} */
  #api;
  /** @type {Set<() => void>} */
  #listeners = new Set();
  /** @type {Partial<Sections>} */
  #sections = {};
  /** @type {Map<Topic, Followed>} */
  #followed = new Map();
  /** The open connections by path. @type {Map<string, AbortController>} */
  #connections = new Map();
  /** Why there is no data of the engine; empty if there is. */
  problem = "";

  /**
   * Calls `changed` after each update of the engine's data until the returned function is called; at once if data is known.
   *
   * @param {EngineApi} api with the rights of the operator
   * @param {() => void} changed
   */
  listen(api, changed) {
    this.#api = api;
    const isOpen = this.#listeners.size > 0;
    this.#listeners.add(changed);
    if (isOpen) changed();
    this.#connectAll();
    return () => {
      this.#listeners.delete(changed);
      this.#connectAll();
    };
  }

  /**
   * Calls `changed` with the state of a session once a second until the returned function is called. Replaces the session before.
   *
   * @param {string} statUrl
   * @param {(event: SessionEvent) => void} changed
   */
  follow(statUrl, changed) {
    const path = `${ownPath(statUrl)}/events`;
    const [, own] = OWN_SESSION.exec(path) ?? [];
    return this.#follow("session", {
      path,
      query: own === undefined ? undefined : ["session", own],
      changed,
    });
  }

  /**
   * Calls `changed` with the players, and again when they change, until the returned function is called.
   *
   * @param {(players: any) => void} changed
   * @param {(problem: string) => void} failed called if the connection fails; it is opened again
   */
  followPlayers(changed, failed) {
    return this.#follow("players", {
      path: `${PLAYERS}?players=1`,
      query: ["players", "1"],
      changed,
      failed,
    });
  }

  /**
   * Calls `changed` with what a device does, and again when that changes, until the returned function is called.
   *
   * @param {string} id
   * @param {(status: any) => void} changed
   * @param {(problem: string) => void} failed called if the connection fails; it is opened again
   */
  followDevice(id, changed, failed) {
    const path = `${PLAYERS}?${new URLSearchParams({ device: id })}`;
    return this.#follow("device", { path, query: ["device", id], changed, failed });
  }

  /**
   * @param {Topic} topic
   * @param {Followed} followed
   */
  #follow(topic, followed) {
    this.#followed.set(topic, followed);
    this.#connectAll();
    return () => {
      if (this.#followed.get(topic) !== followed) return;
      this.#followed.delete(topic);
      this.#connectAll();
    };
  }

  /**
   * Returns the present value of a section; undefined before the first update.
   *
   * @template {keyof Sections} Name
   * @param {Name} name
   * @returns {Sections[Name] | undefined}
   */
  get(name) {
    return this.#sections[name];
  }

  /** Returns the paths to which the page needs connections at present. */
  #paths() {
    const followed = [...this.#followed.values()];
    if (this.#listeners.size === 0) return followed.map(({ path }) => path);
    const queries = followed.flatMap(({ query }) => (query === undefined ? [] : [query]));
    const asked = queries.length === 0 ? "" : `?${new URLSearchParams(queries)}`;
    return [EVENTS + asked, ...followed.filter(({ query }) => query === undefined).map(({ path }) => path)];
  }

  #connectAll() {
    const paths = this.#paths();
    for (const [path, connection] of this.#connections) {
      if (paths.includes(path)) continue;
      connection.abort();
      this.#connections.delete(path);
    }
    for (const path of paths) if (!this.#connections.has(path)) this.#connect(path);
  }

  /** @param {string} path */
  async #connect(path) {
    const connection = new AbortController();
    const { signal } = connection;
    this.#connections.set(path, connection);
    const isOperator = path.startsWith(EVENTS);
    while (!signal.aborted) {
      const problem = t("The engine does not answer. Trying again …");
      try {
        await this.#read(path, isOperator, signal);
      } catch {
        for (const { path: own, query, failed } of this.#followed.values())
          if (!signal.aborted && (own === path || (isOperator && query !== undefined))) failed?.(problem);
      }
      if (signal.aborted) return;
      if (isOperator) {
        this.problem = problem;
        this.#changed();
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  /**
   * Reads events until the connection ends. A header carries the token, so `EventSource` cannot be used.
   *
   * @param {string} path
   * @param {boolean} isOperator
   * @param {AbortSignal} signal
   */
  async #read(path, isOperator, signal) {
    const silence = new AbortController();
    const stop = () => silence.abort();
    signal.addEventListener("abort", stop);
    let timer = setTimeout(stop, SILENCE_MS);
    try {
      const token = isOperator ? (this.#api?.token ?? "") : "";
      const response = await fetch(path, {
        headers: token === "" ? {} : { authorization: `Bearer ${token}` },
        signal: silence.signal,
      });
      if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
      if (isOperator) this.#sections = {};
      const reader = response.body.getReader();
      const decoder = new TextDecoder();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(stop, SILENCE_MS);
        const events = (text + decoder.decode(value, { stream: true })).split("\n\n");
        text = events.pop() ?? "";
        for (const event of events) if (!signal.aborted) this.#take(event);
        if (!isOperator || events.length === 0) continue;
        this.problem = "";
        this.#changed();
      }
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      silence.abort();
    }
  }

  /** @param {string} event */
  #take(event) {
    const [, name, json] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? [];
    if (name === undefined || json === undefined) return;
    const value = JSON.parse(json);
    const { speeds = [], log = [] } = this.#sections;
    const followed = this.#followed.get(/** @type {Topic} */ (name));
    if (followed !== undefined) followed.changed(value);
    else if (name === "speeds") this.#sections.speeds = [...speeds, ...value].slice(-MAX_SPEEDS);
    else if (name === "log") this.#sections.log = [...log, ...value].slice(-MAX_LOG_LINES);
    else Object.assign(this.#sections, { [name]: value });
  }

  #changed() {
    for (const listener of this.#listeners) listener();
  }
}
