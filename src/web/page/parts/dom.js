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
 * @param {HTMLInputElement | HTMLSelectElement} input
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
