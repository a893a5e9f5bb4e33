import { SluiceError } from "../../src/base/errors.ts";
import type { Item } from "../../src/library/contract.ts";
import type { ContentSelector } from "../../src/transfer/contract.ts";
import { isSameOrigin } from "../http/access.ts";
import { isOwn } from "../http/known-items.ts";
import { selectorOf } from "../http/params.ts";
import type { ControlCall } from "./method.ts";
import { text } from "./params.ts";

/** The parameters that name content; the first one given counts (interface: Playback endpoints, source selection). */
export const contentParams = {
  content_id: text.describe("A content id: 40 hexadecimal digits"),
  id: text.describe("Deprecated alias of content_id"),
  infohash: text.describe("40 hexadecimal digits"),
  url: text.describe("The URL of a transport file"),
  magnet: text.describe("A magnet link"),
} as const;

/** The values of `contentParams`. */
export type ContentParams = { readonly [Name in keyof typeof contentParams]?: string | undefined };

/** Returns the content that a call names; undefined if it names none. Throws `bad_selector`. */
export function contentSelector(params: ContentParams, call: ControlCall): ContentSelector | undefined {
  const { content_id, id, infohash, url, magnet } = params;
  const query = new URL(call.context.req.url).searchParams;
  return selectorOf({ content_id, id, infohash, url, magnet }, query);
}

/**
 * Builds the URL that plays the content or the playlist item that a call names. The URL of an item does not contain the
 * item's own link, which may contain a password. Rejects with `no_selector`, `unknown_item` or `access_denied`.
 */
export async function playbackUrl(
  params: ContentParams & { readonly playlist_item_id?: number | undefined },
  call: ControlCall,
): Promise<URL> {
  const selector = contentSelector(params, call);
  const { playlist_item_id: id } = params;
  if (!selector && id === undefined)
    throw new SluiceError("no_selector", "give one of content_id, infohash, url, magnet, playlist_item_id");
  if (id !== undefined && !selector) await requireItem(id, call);
  const url = new URL(selector ? "/ace/getstream" : `/play/0/${id}`, call.base);
  if (selector?.kind === "content_id") url.searchParams.set("content_id", selector.contentId);
  if (selector?.kind === "infohash") url.searchParams.set("infohash", selector.infohash);
  if (selector?.kind === "url") url.searchParams.set("url", selector.url);
  if (selector?.kind === "magnet") url.searchParams.set("magnet", selector.magnet);
  // Players can seek in a film if they get the file itself.
  url.searchParams.set("container", "raw");
  return url;
}

/** Returns an item of the playlist. Rejects with `unknown_item`, or with `access_denied` for pages of other sites. */
export async function requireItem(id: number, call: ControlCall): Promise<Item> {
  if (!isSameOrigin(call.context))
    throw new SluiceError("access_denied", "not available to pages of other sites");
  const item = await call.library.items.get(id);
  if (!item) throw new SluiceError("unknown_item", `there is no item ${id}`);
  return item;
}

/** Returns the content of an item. Throws `unsupported_content` if the item names none. */
export function itemSelector(item: Item): ContentSelector {
  const { content, httpHeaders, id } = item;
  const { contentId, infohash, magnet, url } = content;
  if (magnet !== null) return { kind: "magnet", magnet, isOwn: isOwn(item) };
  if (infohash !== null) return { kind: "infohash", infohash };
  if (contentId !== null) return { kind: "content_id", contentId };
  if (url !== null)
    return { kind: "url", url, ...(httpHeaders.length > 0 && { headers: headersOf(httpHeaders) }) };
  throw new SluiceError("unsupported_content", `item ${id} names no content`);
}

/** Parses `name: value` lines. */
function headersOf(lines: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(lines.map((line) => line.split(/: (.*)/, 2)));
}
