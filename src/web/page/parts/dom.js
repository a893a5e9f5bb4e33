// @ts-check
/** Creates elements without HTML markup, because names are untrusted text. */

/**
 * Creates an element with attributes and children. Omits attributes that are `undefined` or `false`; functions named `on…`
 * become event listeners.
 *
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string | number | boolean | undefined | ((event: any) => void)>} [attributes]
 * @param {...(Node | string | undefined)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== undefined) element.append(child);
  return element;
}

const ICON_PATHS = {
  star: "M12 3.6l2.6 5.3 5.8.8-4.2 4.1 1 5.8-5.2-2.7-5.2 2.7 1-5.8-4.2-4.1 5.8-.8z",
  more: "M12 6.2v.1M12 12v.1M12 17.8v.1",
  lock: "M7 11V8a5 5 0 0110 0v3M6 11h12v9H6z",
  close: "M7 7l10 10M17 7L7 17",
  back: "M15 5l-7 7 7 7",
  play: "M8 5.5v13l10.5-6.5z",
  pause: "M8.5 5.5v13M15.5 5.5v13",
  previous: "M6 15l6-6 6 6",
  next: "M6 9l6 6 6-6",
  skip: "M6 6l8 6-8 6zM17.5 6v12",
  sound: "M4 10v4h3.5l4.5 4V6L7.5 10zM15 9.5a4 4 0 010 5M17.3 7a7.5 7.5 0 010 10",
  muted: "M4 10v4h3.5l4.5 4V6L7.5 10zM15.5 10l4.5 4.5M20 10l-4.5 4.5",
  info: "M12 3.8a8.2 8.2 0 100 16.4 8.2 8.2 0 000-16.4zM12 11v5.5M12 7.6v.1",
  cast: "M4 8V5.5h16v13h-6M4 18.4v.1M4 15a3.5 3.5 0 013.5 3.5M4 11.5a7 7 0 017 7",
  pip: "M3.5 5.5h17v13h-17zM12 12h6v4.5h-6z",
  theatre: "M3.5 6.5h17v11h-17z",
  fullscreen: "M4 9V4.5h5M15 4.5h5V9M20 15v4.5h-5M9 19.5H4V15",
  shrink: "M9 4.5V9H4M20 9h-5V4.5M15 19.5V15h5M4 15h5v4.5",
};

/**
 * Creates an SVG icon.
 *
 * @param {keyof typeof ICON_PATHS} name
 */
export function icon(name) {
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", `icon ${name}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(namespace, "path");
  path.setAttribute("d", ICON_PATHS[name]);
  svg.append(path);
  return svg;
}

/**
 * Creates a button that is marked as busy while its work runs, and ignores clicks meanwhile.
 *
 * @param {string} label
 * @param {() => unknown} work handles its own errors
 * @param {string} [style] class of the button
 */
export function action(label, work, style = "") {
  const button = make("button", { type: "button", class: style || undefined }, label);
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-busy") === "true") return;
    button.setAttribute("aria-busy", "true");
    try {
      await work();
    } finally {
      button.removeAttribute("aria-busy");
    }
  });
  return button;
}

/**
 * Creates a labelled field of a form.
 *
 * @param {string} label
 * @param {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} input
 * @param {string} [hint]
 */
export function field(label, input, hint) {
  return make(
    "label",
    { class: "field" },
    make("span", {}, label),
    input,
    hint === undefined ? undefined : make("small", {}, hint),
  );
}

/**
 * Creates a text field for a list, one entry on each line.
 *
 * @param {readonly string[]} [lines]
 */
export function linesInput(lines = []) {
  const input = make("textarea", { rows: 2, spellcheck: "false", dir: "auto" });
  input.value = lines.join("\n");
  return input;
}

/**
 * Returns the entries of a field of {@link linesInput}.
 *
 * @param {HTMLTextAreaElement} input
 */
export function linesOf(input) {
  return input.value
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/**
 * Creates the options of a `<select>` element.
 *
 * @param {readonly (readonly [value: string, label: string])[]} choices
 * @param {string | undefined} chosen
 */
export function options(choices, chosen) {
  return choices.map(([value, label]) => {
    const option = make("option", { value }, label);
    option.selected = value === chosen;
    return option;
  });
}

/**
 * Creates a `<select>` element.
 *
 * @param {readonly (readonly [value: string, label: string])[]} choices
 * @param {string} chosen
 */
export function select(choices, chosen) {
  return make("select", {}, ...options(choices, chosen));
}

/**
 * Returns the element of the page with this id. Throws if it is missing or of another type.
 *
 * @template {Element} T
 * @param {string} id
 * @param {new () => T} type
 * @returns {T}
 */
export function byId(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}
