import { type HttpUrl, parseHttpUrl } from "./http-url.ts";
import { type ContentId, type Infohash, parseContentId, parseInfohash, parseMultihash } from "./ids.ts";
import { parseItemName } from "./item-name.ts";
import { percentDecode } from "./percent.ts";
import { decodeUtf8 } from "./utf8.ts";

/** What a link names, whatever its form. */
export type Link =
  | { readonly kind: "content_id"; readonly contentId: ContentId; readonly fileIndex?: number }
  | { readonly kind: "infohash"; readonly infohash: Infohash; readonly fileIndex?: number }
  /** Without an infohash: it names a key, of which the DHT knows where it leads (BEP 46). */
  | { readonly kind: "magnet"; readonly magnet: string; readonly infohash: Infohash | undefined }
  /** http or https, in its canonical form: a transport file, a manifest, a playlist, a media file. */
  | { readonly kind: "url"; readonly url: string };

/** Longer texts are no links. */
const MAX_LINK_LENGTH = 64 * 1024;
/** A link may hold another (`url=`), but not for ever. */
const MAX_DEPTH = 3;
const MAX_FILE_INDEX = 100_000;
/** Members of a magnet (BEP 9, 46, 53): they belong to it where it stands in a query without being encoded. */
const MAGNET_MEMBER = /^(?:xt|dn|tr|xl|ws|xs|as|kt|mt|so|s|x\.pe)(?:\.\d+)?$/i;

/**
 * Reads any link that can be played: 40 hex digits (a content id), `acestream:` and `sluice:` URIs in all their forms,
 * magnets, the URLs of engines on any host, and other http and https URLs. Undefined for everything else (`file:`,
 * `rtsp:`, prose); never throws.
 */
export function parseLink(text: string): Link | undefined {
  return text.length > MAX_LINK_LENGTH ? undefined : readLink(text.trim(), 0);
}

function readLink(text: string, depth: number): Link | undefined {
  if (depth > MAX_DEPTH) return undefined;
  const contentId = parseContentId(text);
  if (contentId) return { kind: "content_id", contentId };
  const scheme = /^([a-z]+):/i.exec(text)?.[1]?.toLowerCase();
  switch (scheme) {
    case "magnet":
      return readMagnet(text);
    case "acestream":
    case "sluice":
      return readEngineUri(text.slice(scheme.length + 1), depth);
    case "http":
    case "https":
      return readUrl(text, depth);
    default:
      return undefined;
  }
}

function readMagnet(magnet: string): Link | undefined {
  const query = /^magnet:\?(.*)$/is.exec(magnet)?.[1];
  let second: Infohash | undefined;
  const members = membersOf(query ?? "");
  for (const [name, value] of members) {
    if (!/^xt(?:\.\d+)?$/.test(name)) continue;
    const [, kind, text] = /^urn:(bt[im]h):(.*)$/is.exec(decoded(value)) ?? [];
    const isFirst = kind?.toLowerCase() === "btih";
    const infohash = isFirst ? parseInfohash(text!.trim()) : undefined;
    if (infohash) return { kind: "magnet", magnet, infohash };
    if (!isFirst) second ??= parseMultihash(text?.trim() ?? "");
  }
  // That of version 2 counts where there is no other (BEP 52).
  if (second) return { kind: "magnet", magnet, infohash: second };
  const salt = decoded(first(members, "s"));
  const isKey = members.some(([name, value]) => name === "xs" && parseItemName(decoded(value), salt));
  return isKey ? { kind: "magnet", magnet, infohash: undefined } : undefined;
}

/** What follows `acestream:`: an id, or a query; with or without `//`, the question mark maybe encoded. */
function readEngineUri(rest: string, depth: number): Link | undefined {
  const plain = rest
    .replace(/^\/\//, "")
    .replace(/^\/?%3f/i, "?")
    .replace(/^\/\?/, "?");
  if (plain.startsWith("?")) return readSelector(plain.slice(1), depth);
  const match = /^([0-9a-f]{40})\/?(?:\?(.*))?$/is.exec(plain);
  const contentId = match && parseContentId(match[1]!);
  return contentId ? { kind: "content_id", contentId, ...fileIndex(membersOf(match[2] ?? "")) } : undefined;
}

/** The URL of an engine becomes what it names: its host and its session are of no use to anybody else. */
function readUrl(text: string, depth: number): Link | undefined {
  const url = parseHttpUrl(text);
  return url && (readEngineUrl(url, depth) ?? { kind: "url", url: url.href });
}

function readEngineUrl({ pathname, search }: HttpUrl, depth: number): Link | undefined {
  if (/^\/(?:ace|hls)\/(?:getstream|manifest\.m3u8)\/?$/i.test(pathname))
    return readSelector(search.slice(1), depth);
  // Session URLs, and those of proxies in front of engines.
  const match = /^\/(?:ace\/([rm])|(?:play\/)?(pid|content_id|infohash))\/([0-9a-f]{40})(?:[/.]|$)/i.exec(
    pathname,
  );
  if (!match) return undefined;
  const [, session, form, id] = match;
  const members = membersOf(search.slice(1));
  return session !== undefined || form!.toLowerCase() === "infohash"
    ? { kind: "infohash", infohash: parseInfohash(id!)!, ...fileIndex(members) }
    : { kind: "content_id", contentId: parseContentId(id!)!, ...fileIndex(members) };
}

/** What a query names: the first member that can be read counts, ids before links. */
function readSelector(query: string, depth: number): Link | undefined {
  const members = membersOf(query);
  const value = (name: string) => decoded(first(members, name)).trim();
  for (const name of ["content_id", "id"]) {
    const contentId = parseContentId(value(name).replace(/^acestream:\/\//i, ""));
    if (contentId) return { kind: "content_id", contentId, ...fileIndex(members) };
  }
  const infohash = parseInfohash(value("infohash"));
  if (infohash) return { kind: "infohash", infohash, ...fileIndex(members) };
  const magnet = readMagnet(rawMagnet(members)) ?? readMagnet(value("magnet"));
  if (magnet) return magnet;
  for (const name of ["url", "manifest_url", "data"]) {
    const link = readLink(value(name), depth + 1);
    if (link) return link;
  }
  return undefined;
}

/** A name in lower case, and a value as it is written. */
type Member = readonly [name: string, value: string];

function membersOf(query: string): Member[] {
  const members: Member[] = [];
  // Links copied from the source of a page have their ampersands escaped.
  for (const member of query.replaceAll("&amp;", "&").split("&")) {
    const equals = member.indexOf("=");
    if (equals > 0) members.push([member.slice(0, equals).toLowerCase(), member.slice(equals + 1)]);
  }
  return members;
}

function first(members: readonly Member[], wanted: string): string {
  return members.find(([name]) => name === wanted)?.[1] ?? "";
}

/** A magnet that was not encoded, so that its members have become those of the query around it. */
function rawMagnet(members: readonly Member[]): string {
  const own = members
    .filter(([name]) => MAGNET_MEMBER.test(name))
    .map(([name, value]) => `&${name}=${value}`);
  return `${first(members, "magnet")}${own.join("")}`;
}

function fileIndex(members: readonly Member[]): { fileIndex?: number } {
  const text = first(members, "index") || first(members, "_idx");
  return /^\d{1,6}$/.test(text) && Number(text) <= MAX_FILE_INDEX ? { fileIndex: Number(text) } : {};
}

function decoded(text: string): string {
  return text.includes("%") ? decodeUtf8(percentDecode(text)) : text;
}
