// @ts-check

/**
 * The texts of the page in the language of the user. The keys of the catalogues in `languages/` are the English texts, with
 * placeholders in braces. A text with `{count}` has one form for each plural category of the language.
 *
 * @typedef {Record<string, string | Record<string, string>>} Catalogue
 */

/** @type {{ language: string, catalogue: Catalogue, plural: Intl.PluralRules, number: Intl.NumberFormat }} */
const current = {
  language: "en",
  catalogue: {},
  plural: new Intl.PluralRules("en"),
  number: new Intl.NumberFormat("en"),
};

/**
 * Uses a catalogue from now on.
 *
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
 * Translates a text of the page. The first argument must be a literal, so that tests find it. A module of a place may call it for
 * its constants, because the catalogue is loaded before the first place.
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
