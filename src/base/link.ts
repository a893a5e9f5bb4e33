import { type HttpUrl, parseHttpUrl } from "./http-url.ts";
import { type ContentId, type Infohash, parseContentId, parseInfohash, parseMultihash } from "./ids.ts";
import { parseItemName } from "./item-name.ts";
import { percentDecode } from "./percent.ts";
import { decodeUtf8 } from "./utf8.ts";

/** The content that a link identifies. */
export type Link =
  | { readonly kind: "content_id"; readonly contentId: ContentId; readonly fileIndex?: number }
  | { readonly kind: "infohash"; readonly infohash: Infohash; readonly fileIndex?: number }
  /** Without an infohash the magnet names a public key; the DHT maps it to an infohash (BEP 46). */
  | { readonly kind: "magnet"; readonly magnet: string; readonly infohash: Infohash | undefined }
  /** An http or https URL in canonical form: a transport file, manifest, playlist or media file. */
  | { readonly kind: "url"; readonly url: string };

/** Longer texts are not links. */
const MAX_LINK_LENGTH = 64 * 1024;
/** Links nested in `url=` parameters. */
const MAX_DEPTH = 3;
const MAX_FILE_INDEX = 100_000;
/** Parameters of a magnet (BEP 9, 46, 53). In a query that holds an unencoded magnet they belong to the magnet. */
const MAGNET_PARAMETER = /^(?:xt|dn|tr|xl|ws|xs|as|kt|mt|so|s|x\.pe)(?:\.\d+)?$/i;

/**
 * Parses any link that can be played: 40 hex digits (a content id), `acestream:` and `sluice:` URIs in all their forms,
 * magnets, playback URLs of engines on any host, and other http and https URLs. Returns undefined for anything else; never
 * throws.
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
  const parameters = parametersOf(query ?? "");
  for (const [name, value] of parameters) {
    if (!/^xt(?:\.\d+)?$/.test(name)) continue;
    const [, kind, text] = /^urn:(bt[im]h):(.*)$/is.exec(decoded(value)) ?? [];
    const isFirst = kind?.toLowerCase() === "btih";
    const infohash = isFirst ? parseInfohash(text!.trim()) : undefined;
    if (infohash) return { kind: "magnet", magnet, infohash };
    if (!isFirst) second ??= parseMultihash(text?.trim() ?? "");
  }
  // The v2 infohash counts only if there is no v1 infohash (BEP 52).
  if (second) return { kind: "magnet", magnet, infohash: second };
  const salt = decoded(first(parameters, "s"));
  const isKey = parameters.some(([name, value]) => name === "xs" && parseItemName(decoded(value), salt));
  return isKey ? { kind: "magnet", magnet, infohash: undefined } : undefined;
}

/** Parses the part after `acestream:`: an id or a query, with or without `//`; the question mark may be encoded. */
function readEngineUri(rest: string, depth: number): Link | undefined {
  const plain = rest
    .replace(/^\/\//, "")
    .replace(/^\/?%3f/i, "?")
    .replace(/^\/\?/, "?");
  if (plain.startsWith("?")) return readSelector(plain.slice(1), depth);
  const match = /^([0-9a-f]{40})\/?(?:\?(.*))?$/is.exec(plain);
  const contentId = match && parseContentId(match[1]!);
  return contentId
    ? { kind: "content_id", contentId, ...fileIndex(parametersOf(match[2] ?? "")) }
    : undefined;
}

/** A playback URL of an engine becomes the content it names, since its host and session are not portable. */
function readUrl(text: string, depth: number): Link | undefined {
  const url = parseHttpUrl(text);
  return url && (readEngineUrl(url, depth) ?? { kind: "url", url: url.href });
}

function readEngineUrl({ pathname, search }: HttpUrl, depth: number): Link | undefined {
  if (/^\/(?:ace|hls)\/(?:getstream|manifest\.m3u8)\/?$/i.test(pathname))
    return readSelector(search.slice(1), depth);
  // Session URLs, and URLs of proxies in front of engines.
  const match = /^\/(?:ace\/([rm])|(?:play\/)?(pid|content_id|infohash))\/([0-9a-f]{40})(?:[/.]|$)/i.exec(
    pathname,
  );
  if (!match) return undefined;
  const [, session, form, id] = match;
  const parameters = parametersOf(search.slice(1));
  return session !== undefined || form!.toLowerCase() === "infohash"
    ? { kind: "infohash", infohash: parseInfohash(id!)!, ...fileIndex(parameters) }
    : { kind: "content_id", contentId: parseContentId(id!)!, ...fileIndex(parameters) };
}

/** Returns the content that a query names: the first well-formed parameter counts, ids before links. */
function readSelector(query: string, depth: number): Link | undefined {
  const parameters = parametersOf(query);
  const value = (name: string) => decoded(first(parameters, name)).trim();
  for (const name of ["content_id", "id"]) {
    const contentId = parseContentId(value(name).replace(/^acestream:\/\//i, ""));
    if (contentId) return { kind: "content_id", contentId, ...fileIndex(parameters) };
  }
  const infohash = parseInfohash(value("infohash"));
  if (infohash) return { kind: "infohash", infohash, ...fileIndex(parameters) };
  const magnet = readMagnet(rawMagnet(parameters)) ?? readMagnet(value("magnet"));
  if (magnet) return magnet;
  for (const name of ["url", "manifest_url", "data"]) {
    const link = readLink(value(name), depth + 1);
    if (link) return link;
  }
  return undefined;
}

/** A query parameter: lower-case name and undecoded value. */
type Parameter = readonly [name: string, value: string];

function parametersOf(query: string): Parameter[] {
  const parameters: Parameter[] = [];
  // Links copied from HTML source have escaped ampersands.
  for (const parameter of query.replaceAll("&amp;", "&").split("&")) {
    const equals = parameter.indexOf("=");
    if (equals > 0) parameters.push([parameter.slice(0, equals).toLowerCase(), parameter.slice(equals + 1)]);
  }
  return parameters;
}

function first(parameters: readonly Parameter[], wanted: string): string {
  return parameters.find(([name]) => name === wanted)?.[1] ?? "";
}

/** Rebuilds a magnet that was put into a query unencoded, so that its parameters became parameters of the query. */
function rawMagnet(parameters: readonly Parameter[]): string {
  const own = parameters
    .filter(([name]) => MAGNET_PARAMETER.test(name))
    .map(([name, value]) => `&${name}=${value}`);
  return `${first(parameters, "magnet")}${own.join("")}`;
}

function fileIndex(parameters: readonly Parameter[]): { fileIndex?: number } {
  const text = first(parameters, "index") || first(parameters, "_idx");
  return /^\d{1,6}$/.test(text) && Number(text) <= MAX_FILE_INDEX ? { fileIndex: Number(text) } : {};
}

function decoded(text: string): string {
  return text.includes("%") ? decodeUtf8(percentDecode(text)) : text;
}
