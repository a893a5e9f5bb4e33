import { SluiceError } from "../../src/base/errors.ts";
import type { ContentSelector } from "../../src/engine/contract.ts";
import type { Item } from "../../src/library/contract.ts";
import { isOwnPage } from "../access.ts";
import { selectorOf } from "../params.ts";
import type { ControlCall } from "./method.ts";
import { text } from "./params.ts";

/** How methods name content; the first that is given counts (interface: Playback endpoints, source selection). */
export const contentParams = {
  content_id: text.describe("A content id: 40 hexadecimal digits"),
  id: text.describe("Another name of content_id"),
  infohash: text.describe("40 hexadecimal digits"),
  url: text.describe("The URL of a transport file"),
  magnet: text.describe("A magnet link"),
} as const;

/** What was given of them. */
export type ContentParams = { readonly [Name in keyof typeof contentParams]?: string | undefined };

/** What is named; undefined where nothing is. Throws `bad_selector`. */
export function contentSelector(params: ContentParams, call: ControlCall): ContentSelector | undefined {
  const { content_id, id, infohash, url, magnet } = params;
  const query = new URL(call.context.req.url).searchParams;
  return selectorOf({ content_id, id, infohash, url, magnet }, query);
}

/**
 * The address that plays what is named, or an item. An item's own link stays here: it may hold what is secret. Rejects with
 * `no_selector`, `unknown_item`.
 */
export async function playbackUrl(
  params: ContentParams & { readonly playlist_item_id?: number | undefined },
  call: ControlCall,
): Promise<URL> {
  const selector = contentSelector(params, call);
  const { playlist_item_id: id } = params;
  if (!selector && id === undefined)
    throw new SluiceError("no_selector", "give one of content_id, infohash, url, magnet, playlist_item_id");
  if (id !== undefined && !selector) await knownItem(id, call);
  const url = new URL(selector ? "/ace/getstream" : `/play/0/${id}`, call.base);
  if (selector?.kind === "content_id") url.searchParams.set("content_id", selector.contentId);
  if (selector?.kind === "infohash") url.searchParams.set("infohash", selector.infohash);
  if (selector?.kind === "url") url.searchParams.set("url", selector.url);
  if (selector?.kind === "magnet") url.searchParams.set("magnet", selector.magnet);
  return url;
}

/** An item of the playlist. Rejects with `unknown_item`, and for pages of other sites with `access_denied`. */
export async function knownItem(id: number, call: ControlCall): Promise<Item> {
  if (!isOwnPage(call.context)) throw new SluiceError("access_denied", "not for other pages");
  const item = await call.library.items.get(id);
  if (!item) throw new SluiceError("unknown_item", `there is no item ${id}`);
  return item;
}

/** What an item plays. Throws `unsupported_content` where it names nothing. */
export function itemSelector({ content, id }: Item): ContentSelector {
  const { contentId, infohash, magnet, url } = content;
  if (magnet !== null) return { kind: "magnet", magnet };
  if (infohash !== null) return { kind: "infohash", infohash };
  if (contentId !== null) return { kind: "content_id", contentId };
  if (url !== null) return { kind: "url", url };
  throw new SluiceError("unsupported_content", `item ${id} names no content`);
}
