/** An entry to write. */
interface M3uEntryText {
  /** Undefined if live or unknown. */
  readonly durationSeconds: number | undefined;
  /** In order; attributes with an empty value are omitted. */
  readonly attributes: Iterable<readonly [name: string, value: string]>;
  readonly title: string;
  readonly url: string;
}

/** Returns the first line of a playlist, with its attributes (`url-tvg`, …). */
export function m3uHeader(attributes: Iterable<readonly [name: string, value: string]> = []): string {
  return `#EXTM3U${attributesText(attributes, oneLine)}\n`;
}

/**
 * Returns the two lines of an entry. Kodi takes the title after the last quote, VLC after the first comma, so quotes and commas are
 * replaced everywhere else.
 */
export function m3uEntry({ durationSeconds, attributes, title, url }: M3uEntryText): string {
  const seconds = durationSeconds === undefined ? -1 : Math.max(1, Math.round(durationSeconds));
  const values = attributesText(attributes, (value) =>
    /^https?:/i.test(value)
      ? urlText(value).replaceAll(",", "%2C")
      : oneLine(value).replaceAll(",", "\u201a"),
  );
  return `#EXTINF:${seconds}${values},${oneLine(title)}\n${urlText(url)}\n`;
}

function attributesText(
  attributes: Iterable<readonly [name: string, value: string]>,
  clean: (value: string) => string,
): string {
  let text = "";
  for (const [name, value] of attributes) {
    const cleaned = clean(value);
    if (cleaned !== "") text += ` ${name.replace(/[^\w.-]/g, "-")}="${cleaned}"`;
  }
  return text;
}

/** Reduces a text to one line without straight quotes, which cannot be escaped. */
function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
  const plain = text.replace(/[\0-\x1f\x7f-\x9f\u2028\u2029\ufeff]+/g, " ");
  return plain.replaceAll('"', "\u201d").trim();
}

/** Escapes characters of a URL that would end its line or value, start a comment, or start Kodi headers (`|`). */
function urlText(url: string): string {
  const escaped = url
    .trim()
    .replace(/[\0-\x20"|\x7f-\x9f\u2028\u2029\ufeff]/g, (character) => encodeURIComponent(character));
  return escaped.startsWith("#") ? `%23${escaped.slice(1)}` : escaped;
}
