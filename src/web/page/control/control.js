// @ts-check
import { EngineApi, problemText } from "../parts/api.js";
import { make } from "../parts/dom.js";
import { t } from "../parts/text.js";
import { tokenForm } from "../parts/token-form.js";
import { accessView } from "./access.js";
import { downloadsView } from "./downloads.js";
import { healthView } from "./health.js";
import { logsView } from "./logs.js";
import { networkView } from "./network.js";
import { overviewView } from "./overview.js";
import { settingsView } from "./settings.js";
import { storageView } from "./storage.js";

/**
 * @typedef {import("../parts/place.js").View} View
 * @typedef {{ title: string, create: (context: import("../parts/live-data.js").LiveContext) => View }} Page
 */

/**
 * The pages by the second part of their route, in the order of the navigation.
 *
 * @type {Readonly<Record<string, Page>>}
 */
const PAGES = {
  overview: { title: t("Overview"), create: overviewView },
  downloads: { title: t("Downloads"), create: downloadsView },
  network: { title: t("Network"), create: networkView },
  health: { title: t("Health"), create: healthView },
  storage: { title: t("Storage"), create: storageView },
  logs: { title: t("Logs"), create: logsView },
  access: { title: t("Access"), create: accessView },
  settings: { title: t("Settings"), create: settingsView },
};
const FIRST = "overview";
/** Of the page before the current one, so much remains visible: it shows that the row scrolls. In pixels. */
const SHOWN_BEFORE = 40;

/**
 * Opens the place Control room.
 *
 * @param {HTMLElement} root
 * @param {import("../parts/live-data.js").LiveData} live
 * @returns {import("../parts/place.js").Place}
 */
export function openPlace(root, live) {
  const api = new EngineApi();
  /** @type {Map<string, View>} */
  const views = new Map();
  /** @type {View | undefined} */
  let current;
  const links = Object.keys(PAGES).map((name) => {
    const page = /** @type {Page} */ (PAGES[name]);
    return make("a", { href: `#/control/${name}`, "data-page": name }, page.title);
  });
  const nav = make("nav", { class: "pages", "aria-label": t("Pages of the control room") }, ...links);
  const problem = make("p", { class: "problem", role: "alert", hidden: true });
  const content = make("div", { class: "page" });
  root.append(make("h1", {}, t("Control room")), nav, problem, content);

  /** @param {readonly string[]} path */
  async function show([name = FIRST, ...rest]) {
    current?.hide?.();
    current = undefined;
    problem.hidden = true;
    for (const link of links) {
      if (link.dataset.page !== name) link.removeAttribute("aria-current");
      else {
        link.setAttribute("aria-current", "page");
        // On a phone the row of pages scrolls.
        nav.scrollLeft += link.getBoundingClientRect().left - nav.getBoundingClientRect().left - SHOWN_BEFORE;
      }
    }
    const page = PAGES[name];
    try {
      if (page === undefined) throw new Error(t("The control room has no such page."));
      if ((await api.enter()) !== "full") {
        content.replaceChildren(tokenForm(api, () => show([name, ...rest])));
        return;
      }
      const view = views.get(name) || page.create({ api, live });
      views.set(name, view);
      current = view;
      // A page that is shown already keeps the focus.
      if (content.firstChild !== view.element) content.replaceChildren(view.element);
      await view.show(rest);
    } catch (error) {
      problem.textContent = problemText(error);
      problem.hidden = false;
    }
  }
  return {
    show: ({ path }) => void show(path),
    hide() {
      current?.hide?.();
    },
  };
}
