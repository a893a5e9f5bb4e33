// @ts-check

import { make } from "./dom.js";
import { bytesText, sparklinePath, timeText } from "./figures.js";
import { t } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * Creates an SVG element.
 *
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...Node} children
 */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

const WIDTH = 600;
const HEIGHT = 90;

/** A chart of the speeds of the last hour: a line for the download and one for the upload. */
export class SpeedChart {
  #down = svg("path", { class: "line-down" });
  #up = svg("path", { class: "line-up" });
  #top = make("span", {});
  #since = make("span", {});
  #image = svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
    this.#down,
    this.#up,
  );
  element = make(
    "div",
    { class: "chart" },
    this.#image,
    make("div", { class: "chart-scale" }, this.#since, this.#top),
  );

  /** @param {readonly { at: number, down: number, up: number }[]} samples bytes per second, oldest first */
  update(samples) {
    const downs = samples.map(({ down }) => down);
    const ups = samples.map(({ up }) => up);
    const peak = Math.max(0, ...downs, ...ups);
    const top = Math.max(1, peak);
    // Both lines have the same scale.
    this.#down.setAttribute("d", sparklinePath(downs, WIDTH, HEIGHT, top));
    this.#up.setAttribute("d", sparklinePath(ups, WIDTH, HEIGHT, top));
    const first = samples[0];
    this.#since.textContent =
      first === undefined ? t("No data yet") : t("since {time}", { time: timeText(first.at) });
    this.#top.textContent = samples.length < 2 ? "" : t("peak {speed}", { speed: `${bytesText(peak)}/s` });
    this.#image.setAttribute(
      "aria-label",
      t("Speeds {since}, {peak}", { since: this.#since.textContent, peak: this.#top.textContent }),
    );
  }
}
