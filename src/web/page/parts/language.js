// @ts-check
import { useCatalogue } from "./text.js";

/** @typedef {import("./text.js").Catalogue} Catalogue */

/** The catalogues, each loaded only if its language is chosen. @type {Record<string, () => Promise<{ default: Catalogue }>>} */
const CATALOGUES = {
  en: () => import("../languages/en.json"),
  de: () => import("../languages/de.json"),
  es: () => import("../languages/es.json"),
  pt: () => import("../languages/pt.json"),
  ru: () => import("../languages/ru.json"),
  zh: () => import("../languages/zh.json"),
};

/** The languages by their own names. */
export const LANGUAGES = /** @type {const} */ ([
  ["en", "English"],
  ["de", "Deutsch"],
  ["es", "Español"],
  ["pt", "Português"],
  ["ru", "Русский"],
  ["zh", "中文"],
]);

const RIGHT_TO_LEFT = /^(?:ar|fa|he|ur)\b/;
/** The name under which the browser stores the user's choice. */
const STORED = "sluice-language";

/** Returns the language that the user chose in this browser; empty for that of the browser. */
export function chosenLanguage() {
  try {
    return localStorage.getItem(STORED) ?? "";
  } catch {
    return ""; // The browser forbids it.
  }
}

/**
 * Stores the choice of the user and loads the page again.
 *
 * @param {string} language empty for that of the browser
 */
export function chooseLanguage(language) {
  try {
    localStorage.setItem(STORED, language);
  } catch {
    return; // Without a memory of the browser, its own language remains.
  }
  location.reload();
}

/** Loads the catalogue of the chosen language, or of the first one of the browser that there is. */
export async function loadLanguage() {
  const wanted = [chosenLanguage(), ...navigator.languages];
  const known = wanted.find((tag) => (tag.split("-")[0] ?? "") in CATALOGUES) ?? "en";
  const language = known.split("-")[0] ?? "en";
  const load = CATALOGUES[language];
  if (load) useCatalogue(known, (await load()).default);
  document.documentElement.lang = language;
  document.documentElement.dir = RIGHT_TO_LEFT.test(language) ? "rtl" : "ltr";
}
