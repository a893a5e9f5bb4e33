// @ts-check
import { make } from "./dom.js";

/** How long the browser may take to save a file. */
const SAVE_MS = 60_000;

/**
 * Creates a row of a list: a title with facts below it, and buttons.
 *
 * @param {string} title
 * @param {readonly string[]} facts empty ones are left out
 * @param {...(HTMLElement | undefined)} buttons
 */
export function listRow(title, facts, ...buttons) {
  return make(
    "li",
    { class: "row-item" },
    make(
      "span",
      { class: "row-text" },
      make("bdi", { class: "row-title" }, title),
      make("small", {}, factsText(facts)),
    ),
    ...buttons,
  );
}

/**
 * Joins the facts of a row.
 *
 * @param {readonly string[]} facts empty ones are left out
 */
export function factsText(facts) {
  return facts.filter(Boolean).join(" · ");
}

/**
 * Creates an element of a list of figures.
 *
 * @param {string} name
 * @param {string} text
 */
export function figure(name, text) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, text));
}

/**
 * Lets the browser save a file.
 *
 * @param {string} name
 * @param {Blob} file
 */
export function saveFile(name, file) {
  const link = make("a", { href: URL.createObjectURL(file), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), SAVE_MS);
}
