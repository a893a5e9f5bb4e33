// @ts-check
import { problemText } from "../parts/api.js";
import { clockText } from "../parts/figures.js";
import { t } from "../parts/text.js";
import { showToast } from "../parts/toast.js";
import { liveSeek } from "./engine.js";

/** A player within this distance of the live edge counts as live, because players drift a little. */
const EDGE_SECONDS = 5;
/** The seek control is hidden if the stored part of the stream is shorter. */
const MIN_WINDOW_SECONDS = 20;
/** A manifest lists a minute. After a longer pause the session seeks, because the player's position may have left the manifest. */
const LISTED_SECONDS = 40;
/** Debounces the seek control while the user holds an arrow key or drags. */
const SEEK_DEBOUNCE_MS = 400;

/**
 * The controls of a live stream: shows whether the picture is live or how far behind, and seeks in the part of the stream
 * that the engine stores. After a pause, playback continues at the same position if it is still stored.
 */
export class LiveControls {
  #page;
  #session;
  #player;
  #first = 0;
  #last = 0;
  #pos = 0;
  /**
   * The position of the paused picture, and of the live edge at the time of the pause, in UNIX seconds.
   *
   * @type {{ at: number, last: number } | undefined}
   */
  #paused;
  /** @type {number | undefined} */
  #seekTimer;

  /**
   * @param {import("./view.js").Elements} page
   * @param {import("./engine.js").Session} session
   * @param {import("./player.js").Player} player
   * @param {AbortSignal} signal removes the controls' listeners
   */
  constructor(page, session, player, signal) {
    this.#page = page;
    this.#session = session;
    this.#player = player;
    page.goLive.addEventListener("click", () => this.#goTo(0), { signal });
    page.liveBack.addEventListener("input", () => this.#move(), { signal });
    page.video.addEventListener("seeked", () => this.#show(), { signal });
    page.video.addEventListener("pause", () => this.#pause(), { signal });
    page.video.addEventListener("play", () => this.#resume(), { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#seekTimer), { once: true });
  }

  /**
   * Updates the controls with the current state of the session.
   *
   * @param {import("./engine.js").SessionInfo} info
   */
  update({ livepos }) {
    if (livepos === undefined) return;
    this.#first = Number(livepos.live_first);
    this.#last = Number(livepos.live_last);
    this.#pos = Number(livepos.pos);
    this.#show();
  }

  /** The distance from the shown picture to the live edge, in seconds. */
  get #behindSeconds() {
    return this.#last - this.#pos + Math.max(0, this.#player.behindLive() ?? 0);
  }

  #show() {
    // A film has no live edge.
    if (this.#last === 0) return;
    const { live, liveState, goLive, liveWindow, liveBack, liveLength, video } = this.#page;
    const behind = this.#behindSeconds;
    const isBehind = behind > EDGE_SECONDS;
    const windowSeconds = this.#last - this.#first;
    live.hidden = video.ended;
    live.classList.toggle("behind", isBehind);
    liveState.textContent = isBehind ? t("{time} behind live", { time: clockText(behind) }) : t("Live");
    goLive.hidden = !isBehind;
    liveWindow.hidden = windowSeconds < MIN_WINDOW_SECONDS || video.ended;
    liveLength.textContent = t("{time} available", { time: clockText(windowSeconds) });
    if (this.#seekTimer !== undefined) return;
    liveBack.min = String(-windowSeconds);
    liveBack.value = isBehind ? String(-Math.round(behind)) : "0";
    liveBack.setAttribute("aria-valuetext", liveState.textContent);
  }

  #move() {
    const { liveBack, liveState } = this.#page;
    const behind = -Number(liveBack.value);
    liveState.textContent =
      behind > EDGE_SECONDS ? t("{time} behind live", { time: clockText(behind) }) : t("Live");
    liveBack.setAttribute("aria-valuetext", liveState.textContent);
    clearTimeout(this.#seekTimer);
    this.#seekTimer = window.setTimeout(() => {
      this.#seekTimer = undefined;
      this.#goTo(behind > EDGE_SECONDS ? behind : 0);
    }, SEEK_DEBOUNCE_MS);
  }

  /**
   * Seeks in the player if its manifest contains the position, else in the session.
   *
   * @param {number} behindSeconds distance from the live edge
   */
  #goTo(behindSeconds) {
    const behindManifest = behindSeconds - (this.#last - this.#pos);
    if (behindManifest >= 0 && this.#player.seekBehind(behindManifest)) return;
    this.#seek(behindSeconds > 0 ? this.#last - behindSeconds : -1);
  }

  #pause() {
    this.#paused = { at: this.#last - this.#behindSeconds, last: this.#last };
  }

  #resume() {
    const paused = this.#paused;
    this.#paused = undefined;
    if (!paused || this.#last - paused.last <= LISTED_SECONDS || this.#page.video.ended) return;
    // If the position is no longer stored, the player continues at the live edge.
    this.#seek(paused.at, () => {});
  }

  /**
   * @param {number} at UNIX seconds; -1 for the live edge
   * @param {(problem: string) => void} failed
   */
  async #seek(at, failed = (problem) => showToast(problem)) {
    try {
      await liveSeek(this.#session, Math.max(Math.floor(at), -1));
      this.#pos = at === -1 ? this.#last : Math.max(at, this.#first);
      this.#player.reload();
    } catch (error) {
      failed(problemText(error));
    }
    this.#show();
  }
}

/**
 * Hides the controls of a file for a live stream, and those of a live stream for a file.
 *
 * @param {import("./view.js").Elements} page
 * @param {boolean} isLive
 */
export function showKind(page, isLive) {
  page.stage.dataset.kind = isLive ? "live" : "file";
  page.held.hidden = isLive;
  page.raw.hidden = isLive;
  if (!isLive) for (const element of [page.live, page.liveWindow]) element.hidden = true;
}
