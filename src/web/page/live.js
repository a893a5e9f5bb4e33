// @ts-check
import { liveSeek } from "./engine.js";
import { clockText } from "./figures.js";
import { showToast } from "./view.js";

/** So near the place where a player begins, one watches live: players drift a little. */
const EDGE_SECONDS = 5;
/** A shorter window is not worth a control. */
const LEAST_WINDOW_SECONDS = 20;
/** A manifest lists a minute: who was paused for nearly as long goes on from what the engine keeps. */
const LISTED_SECONDS = 40;
/** Whoever holds an arrow key down means the last of the places. */
const SETTLE_MS = 400;

/**
 * Watching a live stream: shows that it is live, or how far behind one watches; goes back in what the engine keeps, and to
 * where it is live. A pause may be as long as that.
 */
export class LiveWatch {
  #page;
  #session;
  #player;
  #first = 0;
  #last = 0;
  #pos = 0;
  /**
   * When the picture was made that stands still now, and which one was the newest then, in UNIX seconds.
   *
   * @type {{ at: number, last: number } | undefined}
   */
  #paused;
  /** @type {number | undefined} */
  #moving;

  /**
   * @param {import("./view.js").Elements} page
   * @param {import("./engine.js").Session} session
   * @param {import("./player.js").Player} player
   * @param {AbortSignal} signal ends it
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
    signal.addEventListener("abort", () => clearTimeout(this.#moving), { once: true });
  }

  /**
   * What the engine says of the session now.
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

  /** Seconds from the picture that is shown to where one would begin now. */
  get #behindSeconds() {
    return this.#last - this.#pos + Math.max(0, this.#player.behindLive() ?? 0);
  }

  #show() {
    const { live, liveState, goLive, liveWindow, liveBack, liveKept, video } = this.#page;
    const behind = this.#behindSeconds;
    const isBehind = behind > EDGE_SECONDS;
    const keptSeconds = this.#last - this.#first;
    live.hidden = video.ended;
    live.classList.toggle("behind", isBehind);
    liveState.textContent = isBehind ? `${clockText(behind)} behind` : "Live";
    goLive.hidden = !isBehind;
    liveWindow.hidden = keptSeconds < LEAST_WINDOW_SECONDS || video.ended;
    liveKept.textContent = `${clockText(keptSeconds)} kept`;
    if (this.#moving !== undefined) return;
    liveBack.min = String(-keptSeconds);
    liveBack.value = isBehind ? String(-Math.round(behind)) : "0";
    liveBack.setAttribute("aria-valuetext", liveState.textContent);
  }

  #move() {
    const { liveBack, liveState } = this.#page;
    const behind = -Number(liveBack.value);
    liveState.textContent = behind > EDGE_SECONDS ? `${clockText(behind)} behind` : "Live";
    liveBack.setAttribute("aria-valuetext", liveState.textContent);
    clearTimeout(this.#moving);
    this.#moving = window.setTimeout(() => {
      this.#moving = undefined;
      this.#goTo(behind > EDGE_SECONDS ? behind : 0);
    }, SETTLE_MS);
  }

  /**
   * What the manifest lists needs no other one: then the player goes there by itself.
   *
   * @param {number} behindSeconds
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
    // Of what nothing is kept, the player goes on at the edge.
    this.#seek(paused.at, () => {});
  }

  /**
   * @param {number} at UNIX seconds; -1 for live
   * @param {(why: string) => void} failed
   */
  async #seek(at, failed = (why) => showToast(this.#page, why)) {
    try {
      await liveSeek(this.#session, Math.max(Math.floor(at), -1));
      this.#pos = at === -1 ? this.#last : Math.max(at, this.#first);
      this.#player.reload();
    } catch (error) {
      failed(error instanceof Error ? error.message : String(error));
    }
    this.#show();
  }
}

/**
 * What is shown of content that is made while it is watched, and what only a file has.
 *
 * @param {import("./view.js").Elements} page
 * @param {boolean} isLive
 */
export function showKind(page, isLive) {
  page.held.hidden = isLive;
  page.raw.hidden = isLive;
  if (!isLive) for (const element of [page.live, page.liveWindow]) element.hidden = true;
}
