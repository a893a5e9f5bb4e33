import { toHex } from "../base/bytes.ts";
import type { Sha1 } from "../base/ids.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import type { Item, ItemContent, ItemFigures, ItemIcon } from "./contract.ts";
import { channelName } from "./item-names.ts";

/**
 * CHOICE(item-hash): what the hash of an item is made of: the name of its channel, or what it plays where the title names
 * nothing (only brackets or signs).
 */
export function groupHash(item: Pick<Item, "title" | "content">, sha1: Sha1): Uint8Array {
  const name = channelName(item.title);
  return sha1(encodeUtf8(name === "" ? `content ${contentName(item.content)}` : `channel ${name}`));
}

/** The hash of what an item plays. */
export function contentHash(item: Pick<Item, "content">, sha1: Sha1): Uint8Array {
  return sha1(encodeUtf8(contentName(item.content)));
}

/** CHOICE(item-figures): what is computed of an item. `hasOthers`: whether its channel has other sources that can be played. */
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

/** What it plays, in one word: the same for two links to one swarm. */
function contentName({ infohash, contentId, url, magnet }: ItemContent): string {
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
