import { languageCode } from "../media/language.ts";

/** Codes of one entry beyond this are ignored. */
const MAX_CODES = 20;
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
/** Country names in lists that `Intl.DisplayNames` does not know. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  uk: "gb",
  usa: "us",
  england: "gb",
  "great britain": "gb",
};

/** Parses the languages and countries of list entries, given as codes or English names. */
export interface LanguageReader {
  /** Returns three-letter codes for `English;fr`; null if none is known. */
  languages(text: string | undefined): string[] | null;
  /** Returns two-letter codes in lower case for `US;United Kingdom`; null if none is known. */
  countries(text: string | undefined): string[] | null;
}

/** Creates a reader with the English names of `Intl.DisplayNames`. */
export function createLanguageReader(): LanguageReader {
  const languages = namesOf("language");
  const countries = namesOf("region");
  return {
    languages: (text) =>
      codesOf(text, (word) => {
        const code = languageCode(word.length > 3 && !/^\w\w\w?[-_]/.test(word) ? languages.get(word) : word);
        return code === "und" ? undefined : code;
      }),
    countries: (text) =>
      codesOf(text, (word) => OTHER_NAMES[word] ?? (/^[a-z]{2}$/.test(word) ? word : countries.get(word))),
  };
}

function codesOf(text: string | undefined, codeOf: (word: string) => string | undefined): string[] | null {
  if (!text) return null;
  const codes = new Set<string>();
  for (const part of text.split(/[;,|/]/, MAX_CODES)) {
    const code = codeOf(part.trim().toLowerCase());
    if (code !== undefined) codes.add(code);
  }
  return codes.size > 0 ? [...codes] : null;
}

/** Maps English names in lower case to two-letter codes. */
function namesOf(type: "language" | "region"): Map<string, string> {
  const display = new Intl.DisplayNames("en", { type, fallback: "none" });
  const names = new Map<string, string>();
  for (const first of LETTERS) {
    for (const second of LETTERS) {
      const code = `${first}${second}`;
      const name = display.of(type === "region" ? code.toUpperCase() : code);
      // Retired codes have the same name as their replacement; the first one is used.
      if (name && !names.has(name.toLowerCase())) names.set(name.toLowerCase(), code);
    }
  }
  return names;
}
