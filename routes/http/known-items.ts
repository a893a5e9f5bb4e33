import { type Infohash, infohashOfContentId } from "../../src/base/ids.ts";
import type { Item } from "../../src/library/contract.ts";
import type { Library } from "../../src/library/library.ts";
import type { ContentSelector } from "../../src/transfer/contract.ts";

/** Items of the same content; more do not differ in what matters here. */
const MAX_ITEMS = 10;

/** The items of the library. */
type Items = Pick<Library["items"], "query" | "contentHash">;

/** Returns an item of the playlist with this content, one with a magnet link if there is any. */
async function itemWith(items: Items, infohash: Infohash): Promise<Item | undefined> {
  const { items: found } = await items.query({ hash: items.contentHash(infohash), limit: MAX_ITEMS });
  return found.find(({ content }) => content.magnet !== null) ?? found[0];
}

/** Replaces an id by the magnet link of a playlist item with this content: the link also names peers, trackers and web seeds. */
export async function knownSelector(selector: ContentSelector, items: Items): Promise<ContentSelector> {
  if (selector.kind !== "infohash" && selector.kind !== "content_id") return selector;
  const infohash = selector.kind === "infohash" ? selector.infohash : infohashOfContentId(selector.contentId);
  const item = await itemWith(items, infohash);
  const magnet = item?.content.magnet ?? null;
  return item === undefined || magnet === null ? selector : { kind: "magnet", magnet, isOwn: isOwn(item) };
}

/** Returns true for an item that the user has added, in contrast to those of a subscribed list, which its server can change. */
export function isOwn({ externalPlaylistId }: Item): boolean {
  return externalPlaylistId < 0;
}

/** Names content that the engine knows by its infohash only, until it has the metadata, by the title in the playlist. */
export class ItemTitles {
  /** The titles of the content that had no name the last time. An empty text: no item has it. */
  #titles = new Map<string, string>();

  async name<T extends { readonly infohash: string; readonly name: string }>(
    contents: readonly T[],
    items: Items,
  ): Promise<T[]> {
    const before = this.#titles;
    this.#titles = new Map();
    const named: T[] = [];
    for (const content of contents) {
      const { infohash, name } = content;
      if (name !== infohash) {
        named.push(content);
        continue;
      }
      const title = before.get(infohash) ?? (await titleOf(infohash as Infohash, items));
      this.#titles.set(infohash, title);
      named.push(title === "" ? content : { ...content, name: title });
    }
    return named;
  }
}

async function titleOf(infohash: Infohash, items: Items): Promise<string> {
  const item = await itemWith(items, infohash);
  return item?.displayTitle || item?.title || "";
}
