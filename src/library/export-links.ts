import type { ExportOptions, Item, ItemContent } from "./contract.ts";

type LinkOptions = Pick<ExportOptions, "base" | "protocol" | "urlParameters">;

/**
 * Where a player finds an item at this engine.
 *
 * CHOICE(export-links): what an id is enough for is named by it (`/ace/getstream?infohash=…`). URLs of other servers and magnets
 * with trackers are played by the item's own number (`/play/…`): they may hold logins and keys in any place.
 */
export function playLink(
  item: Item,
  { base, protocol, urlParameters }: LinkOptions,
  pid: string | undefined,
): string {
  const id = bareId(item.content);
  const parameters = new URLSearchParams(id ? [id] : []);
  parameters.append("hlc", "1");
  for (const [name, value] of urlParameters) parameters.append(name, value);
  if (pid !== undefined) parameters.append("pid", pid);
  if (!id) {
    if (protocol === "hls") parameters.append("protocol", "hls");
    return `${itemLink(item, base)}?${parameters}`;
  }
  return `${base}/ace/${protocol === "hls" ? "manifest.m3u8" : "getstream"}?${parameters}`;
}

/** What other engines find it by; by way of this engine where it is a URL. */
export function contentLink(item: Item, base: string): string {
  const { contentId, infohash } = item.content;
  if (contentId !== null) return `acestream://${contentId}`;
  return infohash === null ? itemLink(item, base) : `magnet:?xt=urn:btih:${infohash}`;
}

/** A URL as it may be shown; empty where it holds a login, or what looks like one. */
export function withoutLogin(url: string): string {
  if (!URL.canParse(url)) return "";
  const { protocol, username, password, search } = new URL(url);
  const isWeb = protocol === "http:" || protocol === "https:";
  const isSecret = username !== "" || password !== "" || SECRET_NAME.test(search);
  return isWeb && !isSecret ? url : "";
}

/** Parameters that hold secrets, as list servers name them. */
const SECRET_NAME = /[?&](user\w*|login|pass\w*|pwd|token|auth\w*|key|api_?key|secret|sig\w*|session\w*)=/i;

/** The parameter that names content wholly: a content id, or an infohash whose magnet says no more. */
function bareId({ contentId, infohash, magnet, url }: ItemContent): [string, string] | undefined {
  const isMore = magnet !== null && /[?&](tr|ws|x\.pe|as|xs)(\.\d+)?=/i.test(magnet);
  if (isMore || (url !== null && infohash === null)) return undefined;
  if (infohash !== null) return ["infohash", infohash];
  return contentId === null ? undefined : ["id", contentId];
}

function itemLink({ id, externalPlaylistId }: Item, base: string): string {
  return `${base}/play/${Math.max(externalPlaylistId, 0)}/${id}`;
}
