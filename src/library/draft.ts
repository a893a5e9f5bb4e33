import { parseLink } from "../base/link.ts";
import type { M3uEntry } from "../media/m3u.ts";
import type { ItemContent, ItemDraft } from "./contract.ts";
import { categoriesOf } from "./draft-categories.ts";
import type { LanguageReader } from "./draft-languages.ts";
import { contentName } from "./item-figures.ts";

/** Members that are the same for all items of a list. */
export interface DraftDefaults {
  readonly owner: string;
  /** Overrides the category in the list unless null or empty. */
  readonly category: string | null;
  readonly externalPlaylistId: number;
}

/** The members that identify an entry across refreshes. */
interface EntryIdentity {
  readonly content: string;
  readonly title: string;
  readonly tvgId: string;
}

/** Names of media files. An entry without a duration that does not match is a live channel. */
const FILE_NAME =
  /\.(3gp|avi|divx|flac|flv|m2ts|m4a|m4v|mka|mkv|mov|mp3|mp4|mpeg|mpg|ogg|ogm|ogv|opus|vob|wav|webm|wmv)$/i;
/** Printable ASCII with single spaces, which needs no cleaning. */
const PLAIN = /^(?:[!-~]+(?: [!-~]+)*)?$/;
/** Attributes of entries and lists that exports repeat. */
const EXTRA = /^(?:catchup[\w.-]*|tvg-shift|tvg-chno)$/;
/**
 * CHOICE(list-headers): the request headers that a list may set, by the option names of VLC, Kodi and `#EXTHTTP`. Others could change
 * the meaning of a request, or pass the checks of devices in the local network.
 */
const HEADERS: ReadonlyMap<string, string> = new Map([
  ...["user-agent", "referer", "origin", "cookie", "authorization", "accept-language"].map(
    (x) => [x, x] as const,
  ),
  ...(["user-agent", "referer", "origin"] as const).map((x) => [`http-${x}`, x] as const),
  ["http-referrer", "referer"],
]);
const HEADER_VALUE = /^[!-~](?:[ -~]*[!-~])?$/;
const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map();
const NO_CONTENT: ItemContent = {
  transport: "http",
  contentId: null,
  infohash: null,
  magnet: null,
  url: null,
};

/**
 * Converts a list entry to a draft; returns undefined if its link cannot be played (`rtmp:`, `udp:`, files). Links to
 * other engines become the content they name. Removes invisible characters from texts; storing limits their length.
 * `header` holds the attributes of `#EXTM3U`.
 */
export function draftOf(
  entry: M3uEntry,
  defaults: DraftDefaults,
  reader: LanguageReader,
  header: ReadonlyMap<string, string> = NO_ATTRIBUTES,
): ItemDraft | undefined {
  const content = contentOf(entry.url);
  if (!content) return undefined;
  const { attributes } = entry;
  const text = (name: string) => plain(attributes.get(name) ?? "");
  const { category, subcategory, tags } = categoriesOf(plain(entry.group ?? ""));
  const isRadio = /^(true|1|yes)$/i.test(text("radio"));
  const logo = text("tvg-logo");
  return {
    owner: defaults.owner,
    title: titleOf(entry, content),
    content,
    category: defaults.category || category,
    subcategory,
    tags: isRadio ? [...tags, "radio"] : tags,
    isLive: liveness(entry, content),
    autoSearch: text("acestream-autosearch") === "1",
    externalPlaylistId: defaults.externalPlaylistId,
    tvgId: text("tvg-id"),
    tvgName: text("tvg-name"),
    tvgLogo: /^https?:\/\//i.test(logo) ? logo : "",
    tvgExtra: extraOf(attributes, header),
    httpHeaders: content.url === null ? [] : headersOf(entry),
    languages: reader.languages(attributes.get("tvg-language")),
    countries: reader.countries(attributes.get("tvg-country")),
  };
}

/** Returns the attributes that exports repeat, as `name=value`; those of the list are defaults for its entries. */
function extraOf(attributes: ReadonlyMap<string, string>, header: ReadonlyMap<string, string>): string[] {
  const extra = new Map<string, string>();
  for (const [name, value] of [...attributes, ...header])
    if (EXTRA.test(name) && value !== "" && !extra.has(name)) extra.set(name, plain(value));
  return Array.from(extra, ([name, value]) => `${name}=${value}`);
}

/** Returns the request headers among the options of an entry, as `name: value`; the last one of a name counts. */
function headersOf({ options }: M3uEntry): string[] {
  const headers = new Map<string, string>();
  for (const [option, value] of options) {
    const name = HEADERS.get(option.toLowerCase());
    if (name !== undefined && HEADER_VALUE.test(value)) headers.set(name, value);
  }
  return Array.from(headers, ([name, value]) => `${name}: ${value}`);
}

/** Returns the identity of an entry, cheaper than {@link draftOf}; undefined if its link cannot be played. */
export function identityOf(entry: M3uEntry): EntryIdentity | undefined {
  const content = contentOf(entry.url);
  if (!content) return undefined;
  const tvgId = plain(entry.attributes.get("tvg-id") ?? "");
  return { content: contentName(content), title: titleOf(entry, content), tvgId };
}

function contentOf(text: string): ItemContent | undefined {
  const link = parseLink(text);
  switch (link?.kind) {
    case "content_id":
      return { ...NO_CONTENT, transport: "bt", contentId: link.contentId };
    case "infohash":
      return { ...NO_CONTENT, transport: "bt", infohash: link.infohash };
    case "magnet":
      return { ...NO_CONTENT, transport: "bt", infohash: link.infohash ?? null, magnet: link.magnet };
    case "url":
      return { ...NO_CONTENT, transport: transportOf(link.url), url: link.url };
    default:
      return undefined;
  }
}

function transportOf(url: string): ItemContent["transport"] {
  const path = pathOf(url);
  if (/\.(torrent|acelive|acestream)$/i.test(path)) return "bt";
  if (/\.m3u8?$/i.test(path) || /[?&](type|format|output|ext)=(m3u8|hls)\b/i.test(url)) return "hls";
  return /\.mpd$/i.test(path) ? "dash" : "http";
}

/** Infers whether an entry is live: ids and URLs without a duration are channels; of other swarms it is unknown. */
function liveness({ durationSeconds }: M3uEntry, { transport, magnet, url }: ItemContent): 0 | 1 | -1 {
  if (durationSeconds !== undefined) return 0;
  if (transport === "bt") return magnet === null && url === null ? 1 : -1;
  return FILE_NAME.test(pathOf(url!)) ? 0 : 1;
}

/** Returns the path of a canonical URL. */
function pathOf(url: string): string {
  return url.slice(url.indexOf("/", 8)).split(/[?#]/, 1)[0]!;
}

function titleOf(entry: M3uEntry, content: ItemContent): string {
  return plain(entry.title) || fileTitle(content) || "?";
}

/** Returns the file name, for entries without a title. */
function fileTitle({ url, infohash, contentId }: ItemContent): string {
  if (url === null) return infohash ?? contentId ?? "";
  const { pathname, hostname } = new URL(url);
  const name = pathname.split("/").findLast((part) => part !== "");
  return name === undefined ? hostname : plain(decoded(name));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // Invalid escapes are kept verbatim.
  }
}

/** Removes line breaks, control characters and direction marks. */
function plain(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\s]+/gu, " ").trim();
}
