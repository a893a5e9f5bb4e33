/** Letters that Unicode normalization does not decompose. */
const PLAIN: Readonly<Record<string, string>> = {
  ß: "ss", æ: "ae", œ: "oe", ø: "o", ł: "l", đ: "d", ð: "d", þ: "th", ı: "i", ħ: "h",
}; // biome-ignore format: a table

/** Words in titles that describe the picture quality. */
const QUALITY = new Set(
  ["sd", "hd", "fhd", "uhd", "qhd", "hq", "lq", "hdr", "hdr10", "sdr", "4k", "8k", "2k", "full", "ultra", "hevc", "avc", "av1"]
    .concat(["h264", "h265", "x264", "x265", "50fps", "60fps", "480p", "480i", "576p", "576i", "720p", "720i", "1080p"])
    .concat(["1080i", "1440p", "2160p", "4320p"]),
); // biome-ignore format: a table

/**
 * Folds case and accents for searching. Cyrillic й stays a separate letter, and so do voiced Japanese signs.
 */
export function foldText(text: string): string {
  const lower = text.toLowerCase();
  // A changed text is a copy already.
  if (/^[\0-\x7f]*$/.test(lower)) return lower === text ? ownCopy(lower) : lower;
  return lower
    .normalize("NFKD")
    .replace(/(?<!\u0438)[\u0300-\u036f]|(?<=\u0438)[\u0300-\u0305\u0307-\u036f]/g, "")
    .replace(/[ßæœøłđðþıħ]/g, (letter) => PLAIN[letter]!)
    .normalize("NFC");
}

/**
 * Returns the sort key of a folded text for comparison by code units: words separated by spaces, numbers by value (each
 * number is preceded by its digit count). Much cheaper than a collator, and can be stored.
 */
export function sortKey(folded: string): string {
  const words = folded.replace(/[^\p{L}\p{N}\p{M}]+/gu, " ").trim();
  if (words === "") return folded;
  return words.replace(/[0-9]+/g, (digits) => {
    const value = digits.replace(/^0+(?=.)/, "");
    return String.fromCharCode(0x30 + Math.min(value.length, 10)) + value;
  });
}

/**
 * Returns a channel's name without the parts that differ between sources: quality, brackets (except a film's year), and
 * all characters but letters, numbers and plus. May be empty.
 */
export function channelName(title: string): string {
  let name = "";
  // Adjacent numbers stay separated by a space.
  for (const word of nameWords(title)) name += /\d$/.test(name) && /^\d/.test(word) ? ` ${word}` : word;
  return name;
}

/** Returns the folded words of a channel's name, without those that {@link channelName} drops. */
export function nameWords(title: string): string[] {
  const folded = foldText(title);
  const bare = folded.replace(/[([{]([^()[\]{}]*)[)\]}]/g, (_, inside: string) =>
    /^(19|20)\d\d$/.test(inside.trim()) ? ` ${inside} ` : " ",
  );
  const words = wordsWithoutQuality(bare);
  return words.length > 0 ? words : wordsWithoutQuality(folded);
}

/** Copies a text, because JavaScript engines keep the larger text in memory of which it may be a slice. */
export function ownCopy(text: string): string {
  return ` ${text}`.slice(1);
}

function wordsWithoutQuality(folded: string): string[] {
  const words = folded.match(/[\p{L}\p{N}\p{M}+]+/gu) ?? [];
  return words.filter((word) => !QUALITY.has(word));
}
