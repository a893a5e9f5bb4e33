/** ISO 639-1 to ISO 639-2/T, for languages that media commonly have. */
const TWO_TO_THREE: Readonly<Record<string, string>> = {
  af: "afr", am: "amh", ar: "ara", az: "aze", be: "bel", bg: "bul", bn: "ben", bs: "bos", ca: "cat", cs: "ces",
  cy: "cym", da: "dan", de: "deu", el: "ell", en: "eng", eo: "epo", es: "spa", et: "est", eu: "eus", fa: "fas",
  fi: "fin", fr: "fra", ga: "gle", gl: "glg", gu: "guj", he: "heb", hi: "hin", hr: "hrv", hu: "hun", hy: "hye",
  id: "ind", is: "isl", it: "ita", ja: "jpn", ka: "kat", kk: "kaz", km: "khm", kn: "kan", ko: "kor", ky: "kir",
  la: "lat", lb: "ltz", lo: "lao", lt: "lit", lv: "lav", mk: "mkd", ml: "mal", mn: "mon", mr: "mar", ms: "msa",
  mt: "mlt", my: "mya", nb: "nob", ne: "nep", nl: "nld", nn: "nno", no: "nor", pa: "pan", pl: "pol", ps: "pus",
  pt: "por", ro: "ron", ru: "rus", si: "sin", sk: "slk", sl: "slv", sq: "sqi", sr: "srp", sv: "swe", sw: "swa",
  ta: "tam", te: "tel", tg: "tgk", th: "tha", tk: "tuk", tl: "tgl", tr: "tur", tt: "tat", uk: "ukr", ur: "urd",
  uz: "uzb", vi: "vie", yi: "yid", zh: "zho", zu: "zul",
}; // biome-ignore format: a table

/** ISO 639-2/B (bibliographic) to ISO 639-2/T, for codes that differ. */
const BIBLIOGRAPHIC: Readonly<Record<string, string>> = {
  alb: "sqi", arm: "hye", baq: "eus", bur: "mya", chi: "zho", cze: "ces", dut: "nld", fre: "fra", geo: "kat",
  ger: "deu", gre: "ell", ice: "isl", mac: "mkd", mao: "mri", may: "msa", per: "fas", rum: "ron", slo: "slk",
  tib: "bod", wel: "cym",
}; // biome-ignore format: a table

/** Returns the ISO 639-2/T code (three letters) of an ISO 639 code or BCP 47 tag; `und` if it is not a known language. */
export function languageCode(tag: string | null | undefined): string {
  const primary = (tag ?? "").toLowerCase().split(/[-_]/, 1)[0]!;
  if (/^[a-z]{2}$/.test(primary)) return TWO_TO_THREE[primary] ?? "und";
  if (!/^[a-z]{3}$/.test(primary)) return "und";
  return BIBLIOGRAPHIC[primary] ?? primary;
}

/**
 * Returns the three-letter code for a track: the code of the source unchanged, bibliographic or terminological (`ger` or `deu`, players
 * know both), or the code for a shorter tag; `und` if it is not a known language.
 */
export function trackLanguage(tag: string | null | undefined): string {
  const primary = (tag ?? "").toLowerCase().split(/[-_]/, 1)[0]!;
  return /^[a-z]{3}$/.test(primary) ? primary : languageCode(primary);
}

/** Returns the shortest tag for a three-letter code (RFC 5646 2.2.1), as HLS and HTML require: `en` for `eng`. */
export function languageTag(code: string): string {
  const terminological = languageCode(code);
  for (const [two, three] of Object.entries(TWO_TO_THREE)) if (three === terminological) return two;
  return code;
}

/** Returns the English name of a language: `German` for `ger`; the code if it has no name. */
export function languageName(code: string): string {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(languageTag(code)) ?? code;
  } catch {
    return code; // An invalid code is shown as it is.
  }
}
