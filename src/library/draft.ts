import { parseLink } from "../base/link.ts";
import type { M3uEntry } from "../media/m3u.ts";
import type { ItemContent, ItemDraft } from "./contract.ts";
import { categoriesOf } from "./draft-categories.ts";
import type { LanguageReader } from "./draft-languages.ts";

/** What all items of a list have in common. */
export interface DraftDefaults {
  readonly owner: string;
  /** Goes before what the list says; null or empty: as the list says. */
  readonly category: string | null;
  readonly externalPlaylistId: number;
}

/** What tells an entry from others. */
export interface Essence {
  readonly content: string;
  readonly title: string;
  readonly tvgId: string;
}

/** What plays to its end: files by their names. Everything else of a list without lengths is a channel. */
const FILE_NAME =
  /\.(3gp|avi|divx|flac|flv|m2ts|m4a|m4v|mka|mkv|mov|mp3|mp4|mpeg|mpg|ogg|ogm|ogv|opus|vob|wav|webm|wmv)$/i;
/** Words of ASCII with single spaces: nothing to clean. */
const PLAIN = /^(?:[!-~]+(?: [!-~]+)*)?$/;
const NO_CONTENT: ItemContent = {
  transport: "http",
  contentId: null,
  infohash: null,
  magnet: null,
  url: null,
};

/**
 * What an entry of a list becomes; undefined where its link is none that can be played (`rtmp:`, `udp:`, files). Links
 * to engines elsewhere become what they name. Texts are cleaned of what is not to be seen; their length is cut where
 * they are kept.
 */
export function draftOf(
  entry: M3uEntry,
  defaults: DraftDefaults,
  reader: LanguageReader,
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
    languages: reader.languages(attributes.get("tvg-language")),
    countries: reader.countries(attributes.get("tvg-country")),
  };
}

/** What an entry is recognised by, of whose {@link draftOf} it says nothing else; undefined where that is. */
export function essenceOf(entry: M3uEntry): Essence | undefined {
  const content = contentOf(entry.url);
  if (!content) return undefined;
  const tvgId = plain(entry.attributes.get("tvg-id") ?? "");
  return { content: contentText(content), title: titleOf(entry, content), tvgId };
}

/** What plays the same is the same text: for recognising entries. */
export function contentText({ contentId, infohash, url, magnet }: ItemContent): string {
  return infohash ?? contentId ?? url ?? magnet ?? "";
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

/** Lists seldom say. Transport files hold films as a rule; ids without a length are channels. */
function liveness({ durationSeconds }: M3uEntry, { transport, magnet, url }: ItemContent): 0 | 1 | -1 {
  if (durationSeconds !== undefined) return 0;
  if (transport === "bt") return magnet === null && url === null ? 1 : -1;
  return FILE_NAME.test(pathOf(url!)) ? 0 : 1;
}

/** The path of a URL in its canonical form. */
function pathOf(url: string): string {
  return url.slice(url.indexOf("/", 8)).split(/[?#]/, 1)[0]!;
}

function titleOf(entry: M3uEntry, content: ItemContent): string {
  return plain(entry.title) || fileTitle(content) || "?";
}

/** The name of the file, where an entry has no title. */
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
    return text; // What is no escape stands for itself.
  }
}

/** In one line, without what is not to be seen: controls, and marks that turn the direction of what follows. */
function plain(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\s]+/gu, " ").trim();
}
