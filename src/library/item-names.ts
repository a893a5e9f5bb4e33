/** Letters that no decomposition turns into plain ones. */
const PLAIN: Readonly<Record<string, string>> = {
  ß: "ss", æ: "ae", œ: "oe", ø: "o", ł: "l", đ: "d", ð: "d", þ: "th", ı: "i", ħ: "h",
}; // biome-ignore format: a table

/** What is said of a picture and not of a channel. */
const QUALITY = new Set(
  ["sd", "hd", "fhd", "uhd", "qhd", "hq", "lq", "hdr", "hdr10", "sdr", "4k", "8k", "2k", "full", "ultra", "hevc", "avc", "av1"]
    .concat(["h264", "h265", "x264", "x265", "50fps", "60fps", "480p", "480i", "576p", "576i", "720p", "720i", "1080p"])
    .concat(["1080i", "1440p", "2160p", "4320p"]),
); // biome-ignore format: a table

/**
 * A text as people look for it: whatever its case and accents. Cyrillic й stays a letter of its own, and so do the
 * voiced signs of Japanese.
 */
export function foldText(text: string): string {
  const lower = text.toLowerCase();
  // What was changed is a text of its own already.
  if (/^[\0-\x7f]*$/.test(lower)) return lower === text ? ownCopy(lower) : lower;
  return lower
    .normalize("NFKD")
    .replace(/(?<!\u0438)[\u0300-\u036f]|(?<=\u0438)[\u0300-\u0305\u0307-\u036f]/g, "")
    .replace(/[ßæœøłđðþıħ]/g, (letter) => PLAIN[letter]!)
    .normalize("NFC");
}

/**
 * What folded texts are sorted by, unit for unit: words without what is between them, numbers by their value. A number
 * is led by how many digits it has. Cheaper than a collator by far, and can be kept.
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
 * A channel's name without what differs between its sources: quality, brackets (but for a film's year), and whatever is
 * no letter, number or plus. Empty where nothing is left.
 */
export function channelName(title: string): string {
  const folded = foldText(title);
  const bare = folded.replace(/[([{]([^()[\]{}]*)[)\]}]/g, (_, inside: string) =>
    /^(19|20)\d\d$/.test(inside.trim()) ? ` ${inside} ` : " ",
  );
  return joined(bare) || joined(folded);
}

/** `text` without the larger text it may be a part of, which engines keep as long as the part. */
export function ownCopy(text: string): string {
  return ` ${text}`.slice(1);
}

/** The words that name, put together; a space stays between two numbers. */
function joined(folded: string): string {
  const words = folded.match(/[\p{L}\p{N}\p{M}+]+/gu) ?? [];
  const names = words.filter((word) => !QUALITY.has(word));
  let name = "";
  for (const word of names) name += /\d$/.test(name) && /^\d/.test(word) ? ` ${word}` : word;
  return name;
}
