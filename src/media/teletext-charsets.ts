import { languageCode } from "./language.ts";

/** Character sets of teletext (ETSI EN 300 706 15.6). */

/** A G0 set: the characters of the codes 0x20 to 0x7F. */
type CharacterSet = readonly string[];

const ASCII = Array.from({ length: 0x60 }, (_, index) => String.fromCharCode(0x20 + index)).join("");
/** Latin G0 without national options (table 35): ASCII, except for two codes. */
const LATIN = setOf(ASCII, { "\u0024": "¤", "\u007f": "■" });

/** The codes that national option sub-sets replace (table 36). */
const NATIONAL_CODES = [0x23, 0x24, 0x40, 0x5b, 0x5c, 0x5d, 0x5e, 0x5f, 0x60, 0x7b, 0x7c, 0x7d, 0x7e];

const NATIONAL = {
  english: "£$@←½→↑#―¼‖¾÷",
  french: "éïàëêùî#èâôûç",
  swedish: "#¤ÉÄÖÅÜ_éäöåü",
  czech: "#ůčťžýířéáěúš",
  german: "#$§ÄÖÜ^_°äöüß",
  spanish: "ç$¡áéíóú¿üñèà",
  italian: "£$é°ç→↑#ùàòèì",
  romanian: "#¤ŢÂŞĂÎıţâşăî",
  polish: "#ńąŻŚŁćóężśłź",
  turkish: "₺ğİŞÖÇÜĞışöçü",
  croatian: "#ËČĆŽĐŠëčćžđš",
  estonian: "#õŠÄÖŽÜÕšäöžü",
  lettish: "#$ŠėęŽčūšąųžį",
} as const;

/** Serbian (Cyrillic G0 option 1), Russian and Bulgarian (option 2), Ukrainian (option 3): the codes from 0x40. */
const SERBIAN = "ЧАБЦДЕФГХИЈКЛМНОПЌРСТУВЃЉЊЗЋЖЂШЏчабцдефгхијклмнопќрстувѓљњзћжђш■";
const RUSSIAN = "ЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЪЗШЭЩЧЫюабцдефгхийклмнопярстужвьъзшэщч■";
const UKRAINIAN = "ЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬІЗШЄЩЧЇюабцдефгхийклмнопярстужвьізшєщч■";
const GREEK = "ΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡʹΣΤΥΦΧΨΩΪΫάέήίΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύώ■";
const HEBREW = "@ABCDEFGHIJKLMNOPQRSTUVWXYZ←½→↑#אבגדהוזחטיךכלםמןנסעףפץצקרשת₪‖¾÷■";

const CYRILLIC_SERBIAN = setOf(ASCII.slice(0, 32) + SERBIAN);
const CYRILLIC_RUSSIAN = setOf(ASCII.slice(0, 32) + RUSSIAN, { "&": "ы" });
const CYRILLIC_UKRAINIAN = setOf(ASCII.slice(0, 32) + UKRAINIAN, { "&": "ї" });
const GREEK_SET = setOf(ASCII.slice(0, 32) + GREEK, { "<": "«", ">": "»" });
const HEBREW_SET = setOf(ASCII.slice(0, 32) + HEBREW);

/** The Latin supplementary set G2 (table 38), from 0x20. Column 4 holds diacritical marks, which are combining. */
const G2 = [
  ..." ¡¢£$¥#§¤‘“«←↑→↓°±²³×µ¶·÷’”»¼½¾¿",
  ..." \u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u0323\u030a\u0327\u0332\u030b\u0328\u030c",
  ..."―¹®©™♪₠‰α   ⅛⅜⅝⅞ΩÆĐªĦ ĲĿŁØŒºÞŦŊŉĸæđðħıĳŀłøœßþŧŋ■",
];

/** The character sets by designation (table 32): the region in the upper four of seven bits, the national option in the lower three. */
const DESIGNATIONS: ReadonlyMap<number, CharacterSet> = designations();

function designations(): Map<number, CharacterSet> {
  const sets = new Map<number, CharacterSet>();
  const add = (region: number, options: Readonly<Record<number, keyof typeof NATIONAL | CharacterSet>>) => {
    for (const [option, set] of Object.entries(options))
      sets.set(region * 8 + Number(option), typeof set === "string" ? latinWith(NATIONAL[set]) : set);
  };
  const western = { 1: "german", 2: "swedish", 3: "italian", 4: "french" } as const;
  add(0, { 0: "english", ...western, 5: "spanish", 6: "czech" });
  add(1, { 0: "polish", ...western, 6: "czech" });
  add(2, { 0: "english", ...western, 5: "spanish", 6: "turkish" });
  add(3, { 5: "croatian", 7: "romanian" });
  add(4, { 0: CYRILLIC_SERBIAN, 1: "german", 2: "estonian", 3: "lettish", 4: CYRILLIC_RUSSIAN });
  add(4, { 5: CYRILLIC_UKRAINIAN, 6: "czech" });
  add(6, { 6: "turkish", 7: GREEK_SET });
  add(8, { 0: "english", 4: "french" });
  add(10, { 5: HEBREW_SET });
  return sets;
}

/** Receivers are set to a region; ours follows the language that the programme states. */
const REGIONS: Readonly<Record<string, number>> = {
  pol: 1, tur: 2, hrv: 3, srp: 3, slv: 3, bos: 3, ron: 3, rus: 4, bul: 4, ukr: 4, bel: 4, mkd: 4, est: 4, lav: 4, lit: 4,
  ell: 6, heb: 10,
}; // biome-ignore format: a table

/** Returns the designation that applies to text in a language (ISO 639) if the page designates none. */
export function defaultDesignation(language: string): number {
  return (REGIONS[languageCode(language)] ?? 0) * 8;
}

/** Returns the G0 set of a region for the national option (0 to 7) of a page header, or Latin if there is none. */
export function g0Set(designation: number, option: number): CharacterSet {
  return DESIGNATIONS.get((designation & 0x78) | option) ?? DESIGNATIONS.get(designation) ?? LATIN;
}

/** Returns a character of G2 by its code. */
export function g2Character(code: number): string {
  return G2[code - 0x20] ?? " ";
}

/** Returns a Latin letter with the diacritical mark of G2 column 4 that `mark` (0 to 15) names. */
export function accented(code: number, mark: number): string {
  // Code 0x2A without a mark is the only way to an @ in most sets.
  if (mark === 0) return code === 0x2a ? "@" : (LATIN[code - 0x20] ?? " ");
  return ((LATIN[code - 0x20] ?? " ") + g2Character(0x40 + mark)).normalize("NFC");
}

function setOf(characters: string, replaced: Readonly<Record<string, string>> = {}): CharacterSet {
  return [...characters].map((character) => replaced[character] ?? character);
}

function latinWith(national: string): CharacterSet {
  const set = [...LATIN];
  for (const [index, character] of [...national].entries()) set[NATIONAL_CODES[index]! - 0x20] = character;
  return set;
}
