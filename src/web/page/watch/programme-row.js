// @ts-check

import { make } from "../parts/dom.js";
import { timeText } from "../parts/figures.js";
import { locale, t } from "../parts/text.js";

/**
 * @typedef {{ start: number, stop: number, title: string, subtitle: string }} Programme
 */

/**
 * Creates the row of a programme: its title, when it is shown, a reminder for the user's calendar, and what else can be done.
 *
 * @param {Programme} programme
 * @param {number} itemId the item that shows it
 * @param {string} channel its name, or empty if all rows have the same
 * @param {...Node} actions
 */
export function programmeRow({ start, stop, title, subtitle }, itemId, channel, ...actions) {
  return make(
    "li",
    {},
    make(
      "div",
      { class: "guide-source" },
      make("bdi", {}, subtitle === "" ? title : `${title}: ${subtitle}`),
      make("small", {}, spanText(start, stop), channel && ", ", make("bdi", {}, channel)),
    ),
    make(
      "div",
      { class: "recording-buttons" },
      make(
        "a",
        {
          href: `guide/${itemId}-${start}.ics`,
          download: true,
          title: t("Save a reminder for your calendar"),
        },
        t("Remind me"),
      ),
      ...actions,
    ),
  );
}

/**
 * Returns a text such as `Nov 23, 2026, 20:15 – 21:00`.
 *
 * @param {number} start UNIX time
 * @param {number} stop UNIX time
 */
export function spanText(start, stop) {
  const day = new Date(1000 * start).toLocaleDateString(locale(), { dateStyle: "medium" });
  return `${day}, ${timeText(start)} – ${timeText(stop)}`;
}
