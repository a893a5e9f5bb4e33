// @ts-check
import { t } from "./text.js";

/**
 * The live data of the engine: one connection to `api/events` for the whole page.
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
 * @typedef {{ version: string, speed_down: number, speed_up: number,
 *   cache: { free: number, limit: number, active: number, inactive: number, memory: number } }} Status
 * @typedef {{ status: Status, sessions: SessionFigures[], transfers: TransferFigures[], broadcasts: any[], recordings: any[], downloads: DownloadFigures[],
 *   speeds: Speeds[], log: LogLine[] }} Sections
 * @typedef {{ api: EngineApi, live: LiveData }} LiveContext
 */

/** As many as the engine keeps. */
const MAX_SPEEDS = 720;
const MAX_LOG_LINES = 2_000;
/** The engine sends something at least every five seconds. */
const SILENCE_MS = 15_000;
const RETRY_MS = 2_000;

/** One connection to the engine, which is open while a view listens. */
export class LiveData {
  #api;
  /** @type {Set<() => void>} */
  #listeners = new Set();
  /** @type {Partial<Sections>} */
  #sections = {};
  /** @type {AbortController | undefined} */
  #connection;
  /** Why there is no data; empty if there is. */
  problem = "";

  /** @param {EngineApi} api */
  constructor(api) {
    this.#api = api;
  }

  /**
   * Calls `changed` after each update until the returned function is called; at once if data is known.
   *
   * @param {() => void} changed
   */
  listen(changed) {
    this.#listeners.add(changed);
    if (this.#connection === undefined) this.#connect();
    else changed();
    return () => {
      this.#listeners.delete(changed);
      if (this.#listeners.size > 0) return;
      this.#connection?.abort();
      this.#connection = undefined;
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

  async #connect() {
    const connection = new AbortController();
    this.#connection = connection;
    while (!connection.signal.aborted) {
      try {
        await this.#read(connection.signal);
      } catch {
        // The connection is opened again below.
      }
      if (connection.signal.aborted) return;
      this.problem = t("The engine does not answer. Trying again …");
      this.#changed();
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  /**
   * Reads events until the connection ends. A header carries the token, so `EventSource` cannot be used.
   *
   * @param {AbortSignal} signal
   */
  async #read(signal) {
    const silence = new AbortController();
    const stop = () => silence.abort();
    signal.addEventListener("abort", stop);
    let timer = setTimeout(stop, SILENCE_MS);
    try {
      const { token } = this.#api;
      const response = await fetch("api/events", {
        headers: token === "" ? {} : { authorization: `Bearer ${token}` },
        signal: silence.signal,
      });
      if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
      this.#sections = {};
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
        for (const event of events) this.#take(event);
        this.problem = "";
        if (events.length > 0) this.#changed();
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
    if (name === "speeds") this.#sections.speeds = [...speeds, ...value].slice(-MAX_SPEEDS);
    else if (name === "log") this.#sections.log = [...log, ...value].slice(-MAX_LOG_LINES);
    else Object.assign(this.#sections, { [name]: value });
  }

  #changed() {
    for (const listener of this.#listeners) listener();
  }
}
