/** The platform's decoder for the encodings of the WHATWG Encoding Standard; a pure function of its input. */
declare const TextDecoder: new (label: string) => { decode(bytes: Uint8Array): string };

/** A character set of text without Unicode; also the label of a `TextDecoder`. */
export type Charset = (typeof SINGLE_BYTE)[number][0] | (typeof DOUBLE_BYTE)[number][0];

/** Letters of a language beyond ASCII, in lower case, from frequent to rare. */
type Letters = string;

const RUSSIAN = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё";
const UKRAINIAN = "оанивітерслкудмпязьбгйчхцїжюєшщфґ";
const CYRILLIC = [RUSSIAN, UKRAINIAN, "оаинесрјтвдкупмлзљгњбшчцхћжђфџ", "оаіентрсывлкдмпуяьзгбчйхжшюцэёў"];

/** Single-byte character sets and the languages written in them. If two fit equally well, the first one counts. */
const SINGLE_BYTE = [
  ["windows-1252", ["éèàêçôîûâùëïœ", "óíáéñúü", "ãçáéíóâêõúà", "üäöß", "äåöé", "øåæé", "èàéòùì", "çàéíóèòúï", "ëéïöü"]],
  ["windows-1250", ["łóąężśćńź", "áíéěřýčšžůúťňďó", "áíéýčžšúľťôňäďó", "áéöóőüíúű", "ăîâşţ", "čšžćđ"]],
  ["windows-1254", ["ıüşçöğiİâ"]],
  ["windows-1251", CYRILLIC],
  // The Russian letters of koi8-r have the same codes.
  ["koi8-u", [RUSSIAN, UKRAINIAN]],
  ["ibm866", [RUSSIAN, "оаіентрсывлкдмпуяьзгбчйхжшюцэёў"]],
  ["windows-1253", ["αοιετσνηυρπκμλόςίάωέγδύήχθφώβξζψϊ"]],
  ["windows-1257", ["šėųžįąčęū", "āīšēņļčžūķģ", "äõöüšž"]],
  ["windows-1255", ["יולהארמבתשנכםדפקעחןצגטסזףךץ"]],
  ["windows-1256", ["اليمونرتبةعدسفهكقحجأشطصىخإضذزءثئغظآؤپچگی"]],
  ["windows-874", ["านรอกงเมยลทวดส่ีตะไัหคบปแพจชข้ิโผซธศฟ็์ฐุูื"]],
] as const satisfies readonly (readonly [string, readonly Letters[]])[]; // biome-ignore format: a table

/** Scores a character of two bytes by its first and second byte. */
type PairScore = (lead: number, trail: number) => number;

/** Scores of characters: frequent ones, punctuation, rare ones, and sequences that no text contains. */
const [FREQUENT, PUNCTUATION, RARE, INVALID] = [1.2, 0.6, 0, -3];

/** Double-byte character sets: the score of a character by its range. */
const DOUBLE_BYTE = [
  [
    "gb18030",
    (lead, trail) => {
      if (trail < 0x40 || trail === 0x7f || trail === 0xff) return INVALID;
      if (trail < 0xa1 || lead < 0xa1) return -0.3;
      if (lead <= 0xa3) return PUNCTUATION;
      return lead >= 0xb0 && lead <= 0xd7 ? FREQUENT : RARE;
    },
  ],
  [
    "shift_jis",
    (lead, trail) => {
      if (trail < 0x40 || trail === 0x7f || trail > 0xfc || lead > 0xfc) return INVALID;
      if (lead === 0x82 || lead === 0x83) return FREQUENT + 0.1;
      if (lead === 0x81) return PUNCTUATION;
      return lead >= 0x88 && lead <= 0x97 ? FREQUENT : RARE;
    },
  ],
  [
    "euc-kr",
    (lead, trail) => {
      if (trail < 0x41 || trail === 0xff) return INVALID;
      if (trail < 0xa1 || lead < 0xa1) return RARE;
      if (lead <= 0xa3) return PUNCTUATION;
      return lead >= 0xb0 && lead <= 0xc8 ? FREQUENT + 0.05 : -0.5;
    },
  ],
  [
    "euc-jp",
    (lead, trail) => {
      if (trail < 0xa1 || trail === 0xff || (lead < 0xa1 && lead !== 0x8e)) return INVALID;
      if (lead === 0xa4 || lead === 0xa5) return FREQUENT + 0.1;
      if (lead <= 0xa3) return PUNCTUATION;
      return lead >= 0xb0 && lead <= 0xcf ? FREQUENT - 0.05 : -0.5;
    },
  ],
  [
    "big5",
    (lead, trail) => {
      if (trail < 0x40 || trail === 0xff || (trail > 0x7e && trail < 0xa1)) return INVALID;
      if (lead < 0xa1) return -0.5;
      if (lead <= 0xa3) return PUNCTUATION;
      return lead <= 0xc6 ? FREQUENT - 0.05 : RARE;
    },
  ],
] as const satisfies readonly (readonly [string, PairScore])[];

/** Bytes of words with non-ASCII characters that {@link detectCharset} examines; more do not change the result. */
export const SAMPLE_BYTES = 2048;
/** Quotation marks, dashes and signs that occur in every language. */
const MARKS = /[«»„“”‚‘’–—…№°•·€©®™§´×\xa0\u200e\u200f。、「」]/;
const LETTER = /\p{L}|\p{M}/u;
const UPPER = /\p{Lu}/u;
const ASCII_LETTER = /[A-Za-z]/;

/** Returns a decoder of a character set; invalid sequences become U+FFFD. */
export function charsetDecoder(charset: Charset): (bytes: Uint8Array) => string {
  const decoder = new TextDecoder(charset);
  return (bytes) => decoder.decode(bytes);
}

/** Extracts the words with non-ASCII bytes, which decide about the character set, separated by spaces. No separator used here is
 * the second byte of a character in any double-byte character set. */
export function charsetSample(bytes: Uint8Array): number[] {
  const sample: number[] = [];
  let start = 0;
  let isPlain = true;
  for (let at = 0; at <= bytes.length && sample.length < SAMPLE_BYTES; at++) {
    const byte = bytes[at] ?? 0x20;
    if (byte > 0x7f) isPlain = false;
    if (byte > 0x2f) continue;
    if (!isPlain) sample.push(...bytes.subarray(start, Math.min(at, start + SAMPLE_BYTES)), 0x20);
    start = at + 1;
    isPlain = true;
  }
  return sample;
}

/** Returns the most plausible character set of a {@link charsetSample} that is not UTF-8, from the frequency of letters and the
 * characters next to each other. Without a plausible one, returns `windows-1252`. */
export function detectCharset(words: readonly number[]): Charset {
  const sample = Uint8Array.from(words);
  let best: Charset = "windows-1252";
  let bestScore = 0;
  const consider = (charset: Charset, score: number) => {
    // A difference of rounding is none.
    if (score <= bestScore + 1e-9) return;
    best = charset;
    bestScore = score;
  };
  for (const [charset, languages] of SINGLE_BYTE) {
    const characters = [...charsetDecoder(charset)(sample)];
    const contexts = contextScores(characters);
    for (const letters of languages) consider(charset, letterScore(characters, contexts, letters));
  }
  for (const [charset, score] of DOUBLE_BYTE) consider(charset, pairScore(sample, charset, score));
  return best;
}

/** The score of each non-ASCII character by its neighbours; undefined for ASCII. */
function contextScores(characters: readonly string[]): (number | undefined)[] {
  return characters.map((character, at) => {
    if (character <= "\x7f") return undefined;
    const [before, after] = [characters[at - 1] ?? " ", characters[at + 1] ?? " "];
    if (!LETTER.test(character)) {
      if (!MARKS.test(character)) return -1.5;
      return LETTER.test(before) && LETTER.test(after) && character !== "’" && character !== "·" ? -1 : 0;
    }
    const isLatin = character <= "\u024f";
    let score = UPPER.test(character) && LETTER.test(before) && !UPPER.test(before) ? -1 : 0;
    for (const other of [before, after]) {
      if (ASCII_LETTER.test(other)) score += isLatin ? 0.3 : -1;
      else if (other > "\x7f" && LETTER.test(other)) score += isLatin ? -0.4 : 0.2;
    }
    return score;
  });
}

/** The mean score of the non-ASCII characters, if the text is in this language. */
function letterScore(
  characters: readonly string[],
  contexts: readonly (number | undefined)[],
  letters: Letters,
): number {
  const ranks = new Map([...letters].map((letter, rank) => [letter, rank / letters.length]));
  let sum = 0;
  let count = 0;
  for (const [at, context] of contexts.entries()) {
    if (context === undefined) continue;
    count++;
    sum += context;
    const character = characters[at]!;
    const rank = ranks.get(character) ?? ranks.get(character.toLowerCase());
    if (rank !== undefined) sum += 1 - 0.6 * rank;
    else if (LETTER.test(character)) sum -= 1.5;
  }
  return count === 0 ? 0 : sum / count;
}

/** The mean score of the non-ASCII characters in a double-byte character set. */
function pairScore(sample: Uint8Array, charset: Charset, score: PairScore): number {
  let sum = 0;
  let count = 0;
  for (let at = 0; at < sample.length; at++) {
    const lead = sample[at]!;
    if (lead < 0x80) continue;
    count++;
    // Half-width katakana, which takes one byte, is rare.
    if (charset === "shift_jis" && lead >= 0xa1 && lead <= 0xdf) continue;
    const trail = sample[++at] ?? 0;
    // A character of four bytes.
    if (charset === "gb18030" && trail >= 0x30 && trail <= 0x39 && (sample[at + 1] ?? 0) > 0x80) at += 2;
    else sum += score(lead, trail);
    if (isLowerAscii(sample[at + 1])) sum -= 0.8;
    // An invalid sequence may end in a letter or a space.
    if (trail < 0x40) at--;
  }
  return count === 0 ? 0 : sum / count;
}

/** Names of channels mix scripts, but rarely within a word: a character is not followed by small letters. */
function isLowerAscii(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x61 && byte <= 0x7a;
}
