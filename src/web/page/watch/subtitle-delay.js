// @ts-check
import { textTracks } from "./native-player.js";

/** The change of one click. */
const STEP_SECONDS = 0.5;
/** hls.js loads subtitles about this far ahead of the position, so earlier ones would be missing. */
const MAX_SECONDS = 30;

/** The buttons that show subtitles earlier or later. The delay holds until it is reset. */
export class SubtitleDelay {
  #page;
  #seconds = 0;
  /** @type {WeakMap<TextTrackCue, { start: number, end: number }>} the times of cues that were moved, as loaded */
  #loaded = new WeakMap();

  /** @param {import("./view.js").Elements} page */
  constructor(page) {
    this.#page = page;
    page.subtitlesEarlier.addEventListener("click", () => this.#set(this.#seconds - STEP_SECONDS));
    page.subtitlesLater.addEventListener("click", () => this.#set(this.#seconds + STEP_SECONDS));
    // Browsers report no new cues, but report progress several times a second.
    for (const event of ["timeupdate", "progress"]) page.video.addEventListener(event, () => this.#move());
  }

  /** Shows the subtitles of other content as they are. */
  reset() {
    this.#set(0);
  }

  /** @param {number} seconds */
  #set(seconds) {
    this.#seconds = Math.min(MAX_SECONDS, Math.max(-MAX_SECONDS, seconds));
    const sign = this.#seconds > 0 ? "+" : this.#seconds < 0 ? "−" : "";
    this.#page.subtitleDelay.textContent = `${sign}${Math.abs(this.#seconds).toFixed(1)} s`;
    this.#move();
  }

  /** Moves the cues that are not at their place; the cues of tracks that are off are moved when they are shown. */
  #move() {
    for (const track of textTracks(this.#page.video)) {
      // A copy, because the list is sorted by the times that change here.
      for (const cue of [...(track.cues ?? [])]) {
        const loaded = this.#loaded.get(cue) ?? { start: cue.startTime, end: cue.endTime };
        const start = loaded.start + this.#seconds;
        if (cue.startTime === start) continue;
        this.#loaded.set(cue, loaded);
        cue.startTime = start;
        cue.endTime = loaded.end + this.#seconds;
      }
    }
  }
}
