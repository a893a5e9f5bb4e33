// @ts-check
/**
 * Adds what browsers of 2018 lack and the page uses. Newer syntax is rewritten when the page is built. Runs before all other modules.
 */

/**
 * Defines a missing method, which loops do not list.
 *
 * @param {any} owner
 * @param {string} name
 * @param {(...args: any[]) => unknown} method
 */
function define(owner, name, method) {
  if (owner && !(name in owner))
    Object.defineProperty(owner, name, { value: method, writable: true, configurable: true });
}

define(Object, "fromEntries", (/** @type {Iterable<[string, unknown]>} */ entries) => {
  /** @type {Record<string, unknown>} */
  const object = {};
  for (const [name, value] of entries) object[name] = value;
  return object;
});
// biome-ignore lint/suspicious/noPrototypeBuiltins: this is what `Object.hasOwn` replaces
define(Object, "hasOwn", (object, name) => Object.prototype.hasOwnProperty.call(object, name));
for (const list of [Array.prototype, String.prototype])
  define(
    list,
    "at",
    /** @this {any} */ function (index) {
      return this[index < 0 ? this.length + index : index];
    },
  );
define(
  Array.prototype,
  "findLast",
  /** @this {unknown[]} */ function (test) {
    return [...this].reverse().find(test);
  },
);
define(
  String.prototype,
  "replaceAll",
  /** @this {string} */ function (part, by) {
    return part instanceof RegExp ? this.replace(part, by) : this.split(part).join(by);
  },
);
define(
  String.prototype,
  "matchAll",
  /** @this {string} */ function* (pattern) {
    const copy = new RegExp(pattern.source, pattern.flags);
    for (let match = copy.exec(this); match !== null; match = copy.exec(this)) {
      // An empty match would be found again and again.
      if (match[0] === "") copy.lastIndex++;
      yield match;
    }
  },
);
define(Promise, "allSettled", (/** @type {Iterable<unknown>} */ work) =>
  Promise.all(
    Array.from(work, (each) =>
      Promise.resolve(each).then(
        (value) => ({ status: "fulfilled", value }),
        (reason) => ({ status: "rejected", reason }),
      ),
    ),
  ),
);
define(window, "queueMicrotask", (work) => void Promise.resolve().then(work));
for (const node of [Element.prototype, DocumentFragment.prototype])
  define(
    node,
    "replaceChildren",
    /** @this {Element} */ function (...children) {
      this.textContent = "";
      this.append(...children);
    },
  );
define(
  Blob.prototype,
  "arrayBuffer",
  /** @this {Blob} */ function () {
    return new Response(this).arrayBuffer();
  },
);
define(
  Blob.prototype,
  "text",
  /** @this {Blob} */ function () {
    return new Response(this).text();
  },
);
define(AbortSignal, "timeout", (milliseconds) => {
  const controller = new AbortController();
  setTimeout(() => controller.abort(), milliseconds);
  return controller.signal;
});
define(
  Element.prototype,
  "requestFullscreen",
  /** @this {any} */ function () {
    this.webkitRequestFullscreen();
    return Promise.resolve();
  },
);
define(document, "exitFullscreen", () => {
  /** @type {any} */ (document).webkitExitFullscreen();
  return Promise.resolve();
});
if (!("fullscreenElement" in document))
  Object.defineProperty(document, "fullscreenElement", {
    get: () => /** @type {any} */ (document).webkitFullscreenElement,
  });

/** Returns whether listeners can be removed by a signal (since Chromium 88). */
function knowsSignals() {
  const controller = new AbortController();
  controller.abort();
  let isCalled = false;
  const target = document.createElement("i");
  target.addEventListener("click", () => (isCalled = true), { signal: controller.signal });
  target.dispatchEvent(new Event("click"));
  return !isCalled;
}

if (!knowsSignals()) {
  const { addEventListener } = EventTarget.prototype;
  EventTarget.prototype.addEventListener = function (type, listener, options) {
    const signal = options instanceof Object && options.signal;
    if (!signal) {
      addEventListener.call(this, type, listener, options);
    } else if (!signal.aborted) {
      addEventListener.call(this, type, listener, options);
      addEventListener.call(signal, "abort", () => this.removeEventListener(type, listener, options));
    }
  };
}

/** Whether flex containers keep gaps (since Chromium 84); if not, `old-browsers.css` adds margins. */
function hasFlexGap() {
  const box = document.createElement("div");
  box.style.cssText = "display:flex;flex-direction:column;row-gap:1px;position:absolute";
  box.append(document.createElement("i"), document.createElement("i"));
  document.documentElement.append(box);
  const isKnown = box.scrollHeight === 1;
  box.remove();
  return isKnown;
}

if (!hasFlexGap()) document.documentElement.classList.add("no-flex-gap");
