import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { type ContentId, type Infohash, parseContentId, parseInfohash } from "../../src/base/ids.ts";
import { parseItemName } from "../../src/base/item-name.ts";
import type { ItemContent } from "../../src/library/contract.ts";
import type { UploadedFile } from "../http/dependencies.ts";
import { clipped, text } from "./params.ts";
import { MAX_URL, webUrl } from "./playlist-params.ts";

/** The parameters of `playlist_add_item` that name the content. */
export const addedContentParams = {
  content_id: text.describe("A content id: 40 hexadecimal digits"),
  id: text.describe("Deprecated alias of content_id"),
  infohash: text.describe("40 hexadecimal digits"),
  magnet: text.describe("A magnet link"),
  url: webUrl.describe("The URL of a transport file"),
  hls_manifest_url: webUrl.describe("The URL of an HLS manifest"),
  dash_manifest_url: webUrl.describe("The URL of a DASH manifest"),
  video_url: webUrl.describe("The URL of a media file or stream"),
} as const;

const schema = z.object(addedContentParams);
type ContentParams = z.output<typeof schema>;

/** Content with the title from its link, or an uploaded transport file. */
type NamedContent =
  | { readonly content: ItemContent; readonly title: string }
  | { readonly upload: UploadedFile };

const NOTHING = { contentId: null, infohash: null, magnet: null, url: null } as const;

/**
 * Returns the content that a call of `playlist_add_item` names. Throws `missing_parameter` or `bad_parameter`.
 *
 * CHOICE(add-item): exactly one of content_id (or id), infohash, magnet, url, file, hls_manifest_url, dash_manifest_url and
 * video_url is required, except that content_id and infohash of the same content may come together. All other parameters
 * are optional; the default title comes from the link or the transport file. URLs are stored, and fetched at playback.
 */
export function namedContent(params: ContentParams, file: UploadedFile | undefined): NamedContent {
  const { content_id, id, infohash, magnet, url } = params;
  const { hls_manifest_url, dash_manifest_url, video_url } = params;
  const ids = content_id ?? id ?? infohash;
  const selectors = {
    "content_id or infohash": ids,
    magnet,
    url,
    file,
    hls_manifest_url,
    dash_manifest_url,
    video_url,
  };
  const names = Object.entries(selectors).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (names.length === 0) throw new SluiceError("missing_parameter", `expected one of ${NAMES}`);
  if (names.length > 1)
    throw new SluiceError("bad_parameter", `expected only one of ${NAMES}, got ${names.join(" and ")}`);
  if (file) return { upload: file };
  if (magnet !== undefined) return magnetContent(magnet);
  if (ids !== undefined) return idContent(content_id ?? id, infohash);
  if (url !== undefined) return urlContent("bt", url);
  if (hls_manifest_url !== undefined) return urlContent("hls", hls_manifest_url);
  if (dash_manifest_url !== undefined) return urlContent("dash", dash_manifest_url);
  return urlContent("http", video_url!);
}

const NAMES = "content_id, infohash, magnet, url, file, hls_manifest_url, dash_manifest_url and video_url";

function urlContent(transport: ItemContent["transport"], url: string): NamedContent {
  return { content: { ...NOTHING, transport, url }, title: titleOfUrl(url) };
}

function idContent(id: string | undefined, hash: string | undefined): NamedContent {
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

/** Parses a magnet link: the infohash (BEP 9, hexadecimal or base32) or a public key (BEP 46), and the display name. */
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
  const identifier = infohash ?? source;
  if (identifier === undefined) throw new SluiceError("bad_parameter", `magnet: ${expected}`);
  const name =
    query
      .get("dn")
      ?.replace(/\p{Cc}+/gu, " ")
      .trim() || identifier;
  return { content: { ...NOTHING, transport: "bt", infohash: infohash ?? null, magnet }, title: name };
}

/** Returns the last segment of the path without its extension, else the host. Query and login may contain a password and are not used. */
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
