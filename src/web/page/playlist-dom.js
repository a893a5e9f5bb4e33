// @ts-check
/** Elements made by hand: names come from strangers, so that all texts are text and nothing is ever read as markup. */

/**
 * An element with its attributes and children. Attributes that are `undefined` or `false` are left out; `on…` functions are
 * listeners.
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

const SHAPES = {
  star: "M12 3.6l2.6 5.3 5.8.8-4.2 4.1 1 5.8-5.2-2.7-5.2 2.7 1-5.8-4.2-4.1 5.8-.8z",
  more: "M12 6.2v.1M12 12v.1M12 17.8v.1",
  lock: "M7 11V8a5 5 0 0110 0v3M6 11h12v9H6z",
};

/**
 * A sign that needs no font.
 *
 * @param {keyof typeof SHAPES} name
 */
export function sign(name) {
  const space = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(space, "svg");
  picture.setAttribute("viewBox", "0 0 24 24");
  picture.setAttribute("class", `sign ${name}`);
  picture.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", SHAPES[name]);
  picture.append(path);
  return picture;
}

/**
 * A button that shows that it is at work, and does not start twice.
 *
 * @param {string} label
 * @param {() => unknown} work what it throws is for its own handler
 * @param {string} [looks] its class
 */
export function action(label, work, looks = "") {
  const button = make("button", { type: "button", class: looks || undefined }, label);
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
 * A labelled field of a form.
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
 * `<select>` of values and their labels.
 *
 * @param {readonly (readonly [value: string, label: string])[]} choices
 * @param {string} chosen
 */
export function select(choices, chosen) {
  const options = choices.map(([value, label]) => {
    const option = make("option", { value }, label);
    option.selected = value === chosen;
    return option;
  });
  return make("select", {}, ...options);
}

/**
 * The element of the page with this id.
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
