import type { ExportOptions, Item, ItemContent } from "./contract.ts";

type LinkOptions = Pick<ExportOptions, "base" | "protocol" | "urlParameters">;

/**
 * Builds the URL under which this engine plays an item. With `isChannel`, the engine chooses among the sources of the item's channel
 * whenever it plays the URL.
 *
 * CHOICE(export-links): content that an id identifies is linked by that id (`/ace/getstream?infohash=…`). URLs of other
 * servers and magnets with trackers are linked by the item's id (`/play/…`), because they may contain credentials. Films are linked
 * in a form in which players can seek (`container=raw`); live streams are MPEG-TS in either form. A live channel with auto search
 * and several sources is linked by its item's id, so that its stream survives the failure of a source.
 */
export function playLink(
  item: Item,
  { base, protocol, urlParameters }: LinkOptions,
  pid: string | undefined,
  isChannel = false,
): string {
  const id = isChannel ? undefined : bareId(item.content);
  const parameters = new URLSearchParams(id ? [id] : []);
  parameters.append("hlc", "1");
  for (const [name, value] of urlParameters) parameters.append(name, value);
  if (protocol === "http" && !urlParameters.some(needsRemux)) parameters.append("container", "raw");
  if (pid !== undefined) parameters.append("pid", pid);
  if (!id) {
    if (protocol === "hls") parameters.append("protocol", "hls");
    // The export has chosen the source already.
    if (item.autoSearch && !isChannel) parameters.append("skip_autosearch", "1");
    return `${itemLink(item, base)}?${parameters}`;
  }
  return `${base}/ace/${protocol === "hls" ? "manifest.m3u8" : "getstream"}?${parameters}`;
}

/** Returns true for parameters that change the media: audio conversion, or the order of the tracks. */
function needsRemux([name, value]: readonly [string, string]): boolean {
  return name === "preferred_audio_language" || (name.startsWith("transcode_") && value === "1");
}

/** Builds a link for other engines: a content id, a magnet, or for a URL a link to this engine. */
export function contentLink(item: Item, base: string): string {
  const { contentId, infohash } = item.content;
  if (contentId !== null) return `acestream://${contentId}`;
  return infohash === null ? itemLink(item, base) : `magnet:?xt=urn:btih:${infohash}`;
}

/** Returns a URL that may be published, or an empty text if it contains credentials or a parameter that looks secret. */
export function withoutLogin(url: string): string {
  if (!URL.canParse(url)) return "";
  const { protocol, username, password, search } = new URL(url);
  const isWeb = protocol === "http:" || protocol === "https:";
  const isSecret = username !== "" || password !== "" || SECRET_NAME.test(search);
  return isWeb && !isSecret ? url : "";
}

/** Names that servers use for secret parameters. */
const SECRET_NAME = /[?&](user\w*|login|pass\w*|pwd|token|auth\w*|key|api_?key|secret|sig\w*|session\w*)=/i;

/** Returns the parameter that fully identifies the content: a content id, or an infohash if the magnet adds nothing. */
function bareId({ contentId, infohash, magnet, url }: ItemContent): [string, string] | undefined {
  const hasMore = magnet !== null && /[?&](tr|ws|x\.pe|as|xs)(\.\d+)?=/i.test(magnet);
  if (hasMore || (url !== null && infohash === null)) return undefined;
  if (infohash !== null) return ["infohash", infohash];
  return contentId === null ? undefined : ["id", contentId];
}

function itemLink({ id, externalPlaylistId }: Item, base: string): string {
  return `${base}/play/${Math.max(externalPlaylistId, 0)}/${id}`;
}
