import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { type ContentId, type Infohash, parseContentId, parseInfohash } from "../../src/base/ids.ts";
import { parseItemName } from "../../src/base/item-name.ts";
import type { ItemContent } from "../../src/library/contract.ts";
import { clipped, file, text, type UploadedFile } from "./params.ts";
import { MAX_URL, webUrl } from "./playlist-params.ts";

/** What a new item plays, in the parameters of `playlist_add_item`. */
export const addedContentParams = {
  content_id: text.describe("A content id: 40 hexadecimal digits"),
  id: text.describe("Another name of content_id"),
  infohash: text.describe("40 hexadecimal digits"),
  magnet: text.describe("A magnet link"),
  url: webUrl.describe("The URL of a transport file"),
  file: file.describe("A transport file, of 50 MB at most"),
  hls_manifest_url: webUrl.describe("The URL of an HLS manifest"),
  dash_manifest_url: webUrl.describe("The URL of a DASH manifest"),
  video_url: webUrl.describe("The URL of a media file or stream"),
} as const;

const schema = z.object(addedContentParams);
type ContentParams = z.output<typeof schema>;

/** Content that was named, with what its link calls it; or an uploaded transport file. */
export type NamedContent =
  | { readonly content: ItemContent; readonly title: string }
  | { readonly upload: UploadedFile };

const NOTHING = { contentId: null, infohash: null, magnet: null, url: null } as const;

/**
 * CHOICE(add-item): exactly one of content_id (or id), infohash, magnet, url, file, hls_manifest_url, dash_manifest_url and
 * video_url; content_id and infohash of one thing may come together. All else may be left out: a title that is not given is
 * what the link or the transport file says. URLs are kept as they are and fetched when they are played.
 */
export function namedContent(params: ContentParams): NamedContent {
  const { content_id, id, infohash, magnet, url, file } = params;
  const { hls_manifest_url, dash_manifest_url, video_url } = params;
  const ids = content_id ?? id ?? infohash;
  const ways = {
    "content_id or infohash": ids,
    magnet,
    url,
    file,
    hls_manifest_url,
    dash_manifest_url,
    video_url,
  };
  const names = Object.entries(ways).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (names.length === 0) throw new SluiceError("missing_parameter", `expected one of ${NAMES}`);
  if (names.length > 1)
    throw new SluiceError("bad_parameter", `expected only one of ${NAMES}, got ${names.join(" and ")}`);
  if (file) return { upload: file };
  if (magnet !== undefined) return magnetContent(magnet);
  if (ids !== undefined) return identified(content_id ?? id, infohash);
  if (url !== undefined) return linked("bt", url);
  if (hls_manifest_url !== undefined) return linked("hls", hls_manifest_url);
  if (dash_manifest_url !== undefined) return linked("dash", dash_manifest_url);
  return linked("http", video_url!);
}

const NAMES = "content_id, infohash, magnet, url, file, hls_manifest_url, dash_manifest_url and video_url";

function linked(transport: ItemContent["transport"], url: string): NamedContent {
  return { content: { ...NOTHING, transport, url }, title: titleOfUrl(url) };
}

function identified(id: string | undefined, hash: string | undefined): NamedContent {
  const contentId = digits("content_id", id, parseContentId);
  const infohash = digits("infohash", hash, parseInfohash);
  return { content: { ...NOTHING, transport: "bt", contentId, infohash }, title: infohash ?? contentId! };
}

function digits<T extends ContentId | Infohash>(
  name: string,
  value: string | undefined,
  parse: (text: string) => T | undefined,
): T | null {
  if (value === undefined) return null;
  const parsed = parse(value);
  if (parsed !== undefined) return parsed;
  throw new SluiceError("bad_parameter", `${name}: expected 40 hexadecimal digits, got "${clipped(value)}"`);
}

/** The infohash (BEP 9), in hexadecimal or base 32, or a key in its place (BEP 46); and the name that the link gives. */
function magnetContent(magnet: string): NamedContent {
  const expected = "expected a magnet link with xt=urn:btih: or xs=urn:btpk:";
  if (magnet.length > MAX_URL)
    throw new SluiceError(
      "bad_parameter",
      `magnet: expected at most ${MAX_URL} characters, got ${magnet.length}`,
    );
  if (!/^magnet:\?/i.test(magnet)) throw new SluiceError("bad_parameter", `magnet: ${expected}`);
  const query = new URLSearchParams(magnet.slice(magnet.indexOf("?")));
  const infohash = query
    .getAll("xt")
    .map((topic) => parseInfohash(/^urn:btih:(.*)$/i.exec(topic)?.[1] ?? ""))
    .find((found) => found !== undefined);
  const source = query.getAll("xs").find((text) => parseItemName(text, query.get("s") ?? ""));
  const named = infohash ?? source;
  if (named === undefined) throw new SluiceError("bad_parameter", `magnet: ${expected}`);
  const name =
    query
      .get("dn")
      ?.replace(/\p{Cc}+/gu, " ")
      .trim() || named;
  return { content: { ...NOTHING, transport: "bt", infohash: infohash ?? null, magnet }, title: name };
}

/** The last part of its path that says anything, without an extension; else its host. Never what may hold a password. */
function titleOfUrl(link: string): string {
  const { pathname, hostname } = new URL(link);
  const last =
    pathname
      .split("/")
      .filter((part) => part !== "")
      .at(-1) ?? "";
  return (
    decoded(last)
      .replace(/\.[a-z0-9]{2,8}$/i, "")
      .replace(/[\p{Cc}_+]+/gu, " ")
      .trim() || hostname
  );
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
