import { toHex } from "../base/bytes.ts";
import type { Sha1 } from "../base/ids.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import type { Item, ItemContent, ItemFigures, ItemIcon } from "./contract.ts";
import { channelName } from "./item-names.ts";

/**
 * Computes the hash of an item's channel. CHOICE(item-hash): it covers the channel's name, or the content if the title
 * has no name (only brackets or signs).
 */
export function groupHash(item: Pick<Item, "title" | "content">, sha1: Sha1): Uint8Array {
  const name = channelName(item.title);
  return sha1(encodeUtf8(name === "" ? `content ${contentName(item.content)}` : `channel ${name}`));
}

/** Computes the hash of an item's content. */
export function contentHash(item: Pick<Item, "content">, sha1: Sha1): Uint8Array {
  return sha1(encodeUtf8(contentName(item.content)));
}

/** Returns the key of an item's content in the index and in the records of its health. */
export function contentKey({ hashV2 }: Pick<ItemFigures, "hashV2">): string {
  return hashV2.slice(0, 16);
}

/** CHOICE(item-figures): computes the properties of an item. `hasOthers`: its channel has other playable sources. */
export function itemFigures(item: Item, hasOthers: boolean, sha1: Sha1): ItemFigures {
  const isMulti = item.fileCount !== null && item.fileCount > 1;
  const isSwarm = item.content.transport === "bt";
  return {
    hash: toHex(groupHash(item, sha1)),
    hashV2: toHex(contentHash(item, sha1)),
    showAutosearch: item.autoSearch || hasOthers,
    isMultiVod: item.isLive === 0 && isMulti,
    isMultiTfile: isSwarm && isMulti,
    isWrappedUrl: isSwarm ? 0 : 1,
    icons: iconsOf(item),
  };
}

/** Returns a text that identifies the content: equal for two links to the same swarm. */
export function contentName({ infohash, contentId, url, magnet }: ItemContent): string {
  return infohash ?? contentId ?? url ?? magnet ?? "";
}

function iconsOf({ logo, tvgLogo, poster }: Item): ItemIcon[] {
  return [
    ...(logo === null ? [] : [{ type: "logo", imageId: logo } as const]),
    ...(isWebUrl(tvgLogo) ? [{ type: "logo", url: tvgLogo } as const] : []),
    ...(isWebUrl(poster) ? [{ type: "poster", url: poster } as const] : []),
  ];
}

function isWebUrl(text: string): boolean {
  return /^https?:\/\//i.test(text);
}
