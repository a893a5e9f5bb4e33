// @ts-check
import {
  audioLanguages,
  awaitManifest,
  contentOf,
  EngineError,
  sessionInfo,
  startSession,
  stopSession,
} from "./engine.js";
import { statusText } from "./figures.js";
import { LiveWatch, showKind } from "./live.js";
import { attachPlayer } from "./player.js";
import { clearInfo, showFiles, showInfo, showLanguages, showProblem, showWaiting } from "./view.js";

/** How often the figures are asked for; the sparkline shows two minutes of them. */
const INFO_MS = 1000;
const SPARKLINE_VALUES = 120;
/** Said of a picture that stands still, until it is known why. */
const WAITING = "Waiting for data";

/**
 * @typedef {import("./engine.js").Session} Session
 * @typedef {{
 *   page: import("./view.js").Elements,
 *   source: import("./link.js").Link | Uint8Array,
 *   playerId: string,
 *   choice: import("./engine.js").Choice,
 *   onContent: (content: import("./engine.js").Content, session: Session, fileIndex: number) => void,
 *   onUnplayable: (message: string) => void,
 *   after: Promise<void> | undefined,
 * }} PlaybackParts
 */

/** One thing being played: from the start of its session to its end. Another file or container is another one. */
export class Playback {
  #parts;
  #end = new AbortController();
  /** @type {Promise<Session> | undefined} */
  #session;
  /** @type {import("./player.js").Player | undefined} */
  #player;
  /** @type {number[]} */
  #speeds = [];
  #isPlaying = false;
  #isLive = false;
  /** @type {LiveWatch | undefined} */
  #live;

  /** @param {PlaybackParts} parts */
  constructor(parts) {
    this.#parts = parts;
  }

  /** Starts the session, waits for the swarm, plays. What goes wrong is shown. */
  async run() {
    const { page, source, playerId, choice, onContent, onUnplayable, after } = this.#parts;
    const { signal } = this.#end;
    clearInfo(page);
    showKind(page, false);
    showWaiting(page, "Starting");
    try {
      await after;
      if (signal.aborted) return;
      this.#session = startSession(source, playerId, choice);
      const session = await this.#session;
      if (signal.aborted) return;
      this.#watch(session);
      const content = await contentOf(session.infohash, signal);
      const fileIndex = choice.fileIndex ?? largestPlayable(content);
      showFiles(page, content.files, fileIndex);
      onContent(content, session, fileIndex);
      await awaitManifest(session, signal);
      const isFile = session.is_live !== 1;
      const languages = isFile ? await audioLanguages(session.infohash, fileIndex, signal) : [];
      showLanguages(page, languages, choice.audioLanguage);
      page.video.addEventListener("playing", () => this.#played(), { signal });
      page.video.addEventListener("waiting", () => showWaiting(page, WAITING), { signal });
      const player = await attachPlayer(page.video, session.playback_url, choice.atSeconds ?? 0, {
        onFailure: (kind, message) => (kind === "unplayable" ? onUnplayable(message) : this.#fail(message)),
      });
      if (signal.aborted) {
        player.destroy();
        return;
      }
      this.#player = player;
      this.#live = new LiveWatch(page, session, player, signal);
    } catch (error) {
      if (!signal.aborted) this.#fail(messageOf(error));
    }
  }

  /**
   * Ends it all. Resolves when the session has ended: one that starts earlier with the same player and content would be
   * the same session, and end with it.
   */
  async stop() {
    if (this.#end.signal.aborted) return;
    this.#end.abort();
    this.#player?.destroy();
    showWaiting(this.#parts.page, "");
    try {
      await this.#parts.after;
      const session = await this.#session;
      if (session !== undefined) await stopSession(session);
    } catch {
      // It never started, or the engine does not answer: then it ends by itself when nobody reads it.
    }
  }

  /** Where in the stream it is, for another screen to go on from: a live one goes on where it is live. */
  get atSeconds() {
    return this.#isLive ? 0 : this.#parts.page.video.currentTime;
  }

  /**
   * What the picture waits for; empty where it does not.
   *
   * @param {import("./engine.js").SessionInfo} info
   */
  #waitingText({ status, peers, buffering }) {
    const { video } = this.#parts.page;
    const why = buffering && buffering.reason !== "player" ? buffering.text : undefined;
    if (!this.#isPlaying) return why ?? statusText(status === "dl" ? "prebuf" : status, peers);
    const isStalled = !video.paused && !video.ended && video.readyState < HTMLMediaElement.HAVE_FUTURE_DATA;
    return isStalled ? (why ?? WAITING) : "";
  }

  #played() {
    this.#isPlaying = true;
    showWaiting(this.#parts.page, "");
  }

  /** @param {string} message */
  #fail(message) {
    const { page } = this.#parts;
    showProblem(page, message);
    // Nothing to look at.
    if (!this.#isPlaying) page.stage.hidden = true;
    this.stop();
  }

  /**
   * Shows the session's figures until the end.
   *
   * @param {Session} session
   */
  async #watch(session) {
    const { page } = this.#parts;
    const { signal } = this.#end;
    while (!signal.aborted) {
      try {
        const info = await sessionInfo(session, signal);
        this.#speeds = [...this.#speeds, info.speed_down].slice(-SPARKLINE_VALUES);
        showInfo(page, info, this.#speeds);
        this.#isLive = info.is_live === 1;
        showKind(page, this.#isLive);
        if (this.#isLive) this.#live?.update(info);
        if (info.error_message) this.#fail(info.error_message);
        else showWaiting(page, this.#waitingText(info));
      } catch (error) {
        if (signal.aborted) return;
        // The engine answered: the session is over. No answer at all may be a moment's trouble: ask again.
        if (error instanceof EngineError) this.#fail(`The session has ended: ${error.message}`);
      }
      await new Promise((resolve) => setTimeout(resolve, INFO_MS));
    }
  }
}

/** @param {import("./engine.js").Content} content */
function largestPlayable({ files }) {
  const playable = files.filter((file) => file.isPlayable);
  const all = playable.length > 0 ? playable : files;
  return all.reduce((largest, file) => (file.size > largest.size ? file : largest)).index;
}

/** @param {unknown} error */
function messageOf(error) {
  if (error instanceof TypeError) return "The engine does not answer. Is it still running?";
  return error instanceof Error ? error.message : String(error);
}
