// @ts-check
import { behindText } from "./figures.js";

/** So near the place where the player would begin, one watches live: players drift a little. */
const EDGE_SECONDS = 5;

/**
 * Shows that a stream is live, or how far behind it is being watched, with a way back; nothing for what is no live stream.
 *
 * @param {import("./view.js").Elements} page
 * @param {boolean} isLive
 * @param {number | undefined} behindSeconds undefined before that is known
 */
export function showLive(page, isLive, behindSeconds) {
  const isBehind = behindSeconds !== undefined && behindSeconds > EDGE_SECONDS;
  page.live.hidden = !isLive;
  page.live.classList.toggle("behind", isBehind);
  page.liveState.textContent = isBehind ? behindText(behindSeconds) : "Live";
  page.goLive.hidden = !isBehind;
  // There is no file of which a share could be here, or that could be opened.
  page.held.hidden = isLive;
  page.raw.hidden = isLive;
}
