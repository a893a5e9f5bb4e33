// @ts-check
import { options } from "../parts/dom.js";
import { t } from "../parts/text.js";

/** The value of the menu entry with which the player chooses the quality. */
const AUTOMATIC = "-1";

/**
 * The picture sizes of a stream, the largest first; empty if they are not known. `index` identifies one for the player.
 *
 * @typedef {{ isAutomatic: boolean, all: { index: number, height: number, isPlaying: boolean }[] }} Qualities
 */

/**
 * Shows the qualities of what is played; hides the menu if there is only one.
 *
 * @param {import("./view.js").Elements} page
 * @param {Qualities} qualities
 */
export function showQualities({ quality, qualityLabel }, { isAutomatic, all }) {
  const playing = all.find(({ isPlaying }) => isPlaying);
  const automatic = isAutomatic && playing ? `${t("Automatic")} (${playing.height}p)` : t("Automatic");
  const choices = all.map(({ index, height }) => /** @type {const} */ ([String(index), `${height}p`]));
  const chosen = isAutomatic ? AUTOMATIC : String(playing?.index);
  quality.replaceChildren(...options([[AUTOMATIC, automatic], ...choices], chosen));
  qualityLabel.hidden = all.length < 2;
}

/**
 * Returns the qualities that hls.js plays. Levels of equal height differ in their audio only, which has a menu of its own.
 *
 * @param {import("hls.js").default} hls
 * @returns {Qualities}
 */
export function qualitiesOf(hls) {
  const isAutomatic = hls.manualLevel === -1;
  const playing = hls.levels[isAutomatic ? hls.currentLevel : hls.manualLevel]?.height;
  /** @type {Map<number, number>} */
  const byHeight = new Map();
  for (const [index, { height }] of hls.levels.entries())
    if (height > 0 && !byHeight.has(height)) byHeight.set(height, index);
  const all = [...byHeight]
    .map(([height, index]) => ({ index, height, isPlaying: height === playing }))
    .sort((a, b) => b.height - a.height);
  return { isAutomatic, all };
}
