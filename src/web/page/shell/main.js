// @ts-check
import "./old-browsers.js";
import { problemText } from "../parts/api.js";
import { byId, make } from "../parts/dom.js";
import { loadLanguage } from "../parts/language.js";
import { LiveData } from "../parts/live-data.js";
import { listenForRemoteControl } from "../parts/remote-control.js";
import { t, translateDocument } from "../parts/text.js";
import { applyDisplay, openDisplay } from "./display.js";

/**
 * @typedef {import("../parts/place.js").Place} Place
 * @typedef {import("../parts/place.js").Route} Route
 * @typedef {{ openPlace: (root: HTMLElement, live: LiveData) => Place }} PlaceModule
 * @typedef {{ title: () => string, styles: readonly string[], load: () => Promise<PlaceModule> }} PlaceEntry
 */

/**
 * The places: their titles, their style sheets that `index.html` does not load, and their modules, which are loaded when the
 * user opens the place for the first time.
 *
 * @type {Readonly<Record<string, PlaceEntry>>}
 */
const PLACES = {
  watch: { title: () => "Sluice", styles: [], load: () => import("../watch/watch.js") },
  studio: {
    title: () => `${t("Studio")} – Sluice`,
    styles: ["app/studio/studio.css"],
    load: () => import("../studio/studio.js"),
  },
  control: {
    title: () => `${t("Control room")} – Sluice`,
    styles: ["app/control/control.css", "app/control/health.css", "app/control/settings.css"],
    load: () => import("../control/control.js"),
  },
};

/** The place of a URL without a hash. */
const FIRST = "watch";

/** The opened places by name. @type {Map<string, Promise<Place>>} */
const opened = new Map();
let shown = "";
const live = new LiveData();

/**
 * Parses the hash of a URL: `#/control/settings` is a route; any other text is a link to content, for the place Watch.
 *
 * @param {string} hash
 * @returns {Route & { place: string }}
 */
function readHash(hash) {
  if (hash.length > 1 && !hash.startsWith("#/")) return { place: FIRST, path: [], link: hash.slice(1) };
  const [name = "", ...path] = hash.slice(2).split("/").filter(Boolean);
  return { place: Object.hasOwn(PLACES, name) ? name : FIRST, path };
}

/** @param {string} name a key of `PLACES` */
function placeOf(name) {
  return /** @type {PlaceEntry} */ (PLACES[name]);
}

/** @param {string} name */
function open(name) {
  const known = opened.get(name);
  if (known !== undefined) return known;
  const { styles, load } = placeOf(name);
  const place = Promise.all([load(), ...styles.map(loadStyle)]).then(([module]) =>
    module.openPlace(byId(name, HTMLElement), live),
  );
  opened.set(name, place);
  // After an error, such as a lost connection, the next visit loads it again.
  place.catch(() => opened.delete(name));
  return place;
}

/**
 * @param {string} href
 * @returns {Promise<void>}
 */
function loadStyle(href) {
  return new Promise((resolve, reject) => {
    const failed = () => {
      sheet.remove();
      reject(new TypeError(`cannot load ${href}`));
    };
    const sheet = make("link", { rel: "stylesheet", href, onload: () => resolve(), onerror: failed });
    document.head.append(sheet);
  });
}

/** Shows the place of the current URL. */
async function show() {
  const { place: name, ...route } = readHash(location.hash);
  const problem = byId("place-problem", HTMLElement);
  problem.hidden = true;
  const previous = shown;
  shown = name;
  for (const each of Object.keys(PLACES)) byId(each, HTMLElement).hidden = each !== name;
  for (const link of document.querySelectorAll("#places a")) {
    if (/** @type {HTMLElement} */ (link).dataset.place === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = placeOf(name).title();
  if (previous !== "" && previous !== name) {
    window.scrollTo(0, 0);
    opened.get(previous)?.then(
      (place) => place.hide(),
      () => {},
    );
  }
  try {
    const place = await open(name);
    if (shown === name) place.show(route);
  } catch (error) {
    problem.textContent = problemText(error);
    problem.hidden = false;
  }
}

listenForRemoteControl(document.body);
byId("display", HTMLButtonElement).addEventListener("click", openDisplay);

/** Translates the page before it shows the first place. */
async function start() {
  applyDisplay();
  // Without its catalogue the page is in English.
  await loadLanguage().catch(() => {});
  translateDocument(document.body);
  window.addEventListener("hashchange", show);
  await show();
}

start();
// Only secure pages have service workers: on the engine's own computer, and behind a proxy with TLS.
if ("serviceWorker" in navigator)
  navigator.serviceWorker.register("app/shell/service-worker.js", { scope: "./" }).catch(() => {});
