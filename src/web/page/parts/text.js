// @ts-check
/**
 * The texts of the page in the language of the user. The keys of the catalogues in `languages/` are the English texts, with
 * placeholders in braces. A text with `{count}` has one form for each plural category of the language.
 *
 * @typedef {Record<string, string | Record<string, string>>} Catalogue
 */

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

/** @type {{ language: string, catalogue: Catalogue, plural: Intl.PluralRules, number: Intl.NumberFormat }} */
const current = {
  language: "en",
  catalogue: {},
  plural: new Intl.PluralRules("en"),
  number: new Intl.NumberFormat("en"),
};

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

/**
 * @param {string} language
 * @param {Catalogue} catalogue
 */
export function useCatalogue(language, catalogue) {
  current.language = language;
  current.catalogue = catalogue;
  current.plural = new Intl.PluralRules(language);
  current.number = new Intl.NumberFormat(language);
}

/** Returns the language for dates and numbers. */
export function locale() {
  return current.language;
}

/**
 * Translates a text of the page. The first argument must be a literal, so that tests find it.
 *
 * @param {string} english
 * @param {Record<string, string | number>} [values] numbers are formatted in the language
 */
export function t(english, values = {}) {
  const entry = current.catalogue[english] ?? english;
  const text =
    typeof entry === "string" ? entry : (entry[current.plural.select(Number(values.count))] ?? english);
  return text.replace(/\{(\w+)\}/g, (placeholder, name) => {
    const value = values[name];
    return typeof value === "number" ? current.number.format(value) : (value ?? placeholder);
  });
}

/**
 * Translates the texts that are in the HTML of the page, and its labels.
 *
 * @param {Element} root
 */
export function translateDocument(root) {
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
    const english = (node.nodeValue ?? "").trim().replace(/\s+/g, " ");
    if (english in current.catalogue)
      node.nodeValue = (node.nodeValue ?? "").replace(/\S[\s\S]*\S|\S/, t(english));
  }
  for (const name of ["title", "aria-label", "placeholder"])
    for (const element of root.querySelectorAll(`[${name}]`))
      element.setAttribute(name, t(element.getAttribute(name) ?? ""));
}
