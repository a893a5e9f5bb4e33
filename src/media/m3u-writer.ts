/** What stands in a list about one entry. */
export interface M3uEntryText {
  /** Undefined for what is live, or not known. */
  readonly durationSeconds: number | undefined;
  /** In order; those with an empty value are left out. */
  readonly attributes: Iterable<readonly [name: string, value: string]>;
  readonly title: string;
  readonly url: string;
}

/** The first line of a list, with its attributes (`url-tvg` …). */
export function m3uHeader(attributes: Iterable<readonly [name: string, value: string]> = []): string {
  return `#EXTM3U${attributesText(attributes, oneLine)}\n`;
}

/**
 * The two lines of an entry, such that every player finds the title and the URL: Kodi looks for the title behind the
 * last quote, VLC behind the first comma, so neither may be anywhere else.
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

/** One line without a straight quote: there is no way to escape one. */
function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const plain = text.replace(/[\0-\x1f\x7f-\x9f\u2028\u2029\ufeff]+/g, " ");
  return plain.replaceAll('"', "\u201d").trim();
}

/** A URL without what would end its line or value, begin a comment, or begin what Kodi takes for headers. */
function urlText(url: string): string {
  const escaped = url
    .trim()
    .replace(/[\0-\x20"|\x7f-\x9f\u2028\u2029\ufeff]/g, (character) => encodeURIComponent(character));
  return escaped.startsWith("#") ? `%23${escaped.slice(1)}` : escaped;
}
