import { languageCode } from "../media/language.ts";

/** Nobody lists more, but to flood us. */
const MAX_CODES = 20;
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
/** What lists write besides the names that the machine knows. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  uk: "gb",
  usa: "us",
  england: "gb",
  "great britain": "gb",
};

/** Reads what lists say of languages and countries, in codes and in English names. */
export interface LanguageReader {
  /** Three-letter codes of `English;fr`; null where none is known. */
  languages(text: string | undefined): string[] | null;
  /** Two-letter codes in lower case of `US;United Kingdom`; null where none is known. */
  countries(text: string | undefined): string[] | null;
}

/** A reader with the English names that the machine has for codes. */
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

/** Two-letter codes by their English names, in lower case. */
function namesOf(type: "language" | "region"): Map<string, string> {
  const display = new Intl.DisplayNames("en", { type, fallback: "none" });
  const names = new Map<string, string>();
  for (const first of LETTERS) {
    for (const second of LETTERS) {
      const code = `${first}${second}`;
      const name = display.of(type === "region" ? code.toUpperCase() : code);
      // Retired codes come with the names of today's: the first of a name stays.
      if (name && !names.has(name.toLowerCase())) names.set(name.toLowerCase(), code);
    }
  }
  return names;
}
