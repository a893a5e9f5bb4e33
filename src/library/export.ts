import { toHex } from "../base/bytes.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { m3uEntry, m3uHeader } from "../media/m3u-writer.ts";
import type { ExportOptions, Item, Items } from "./contract.ts";
import { contentLink, playLink, withoutLogin } from "./export-links.ts";

/** What an export works with. */
export interface ExportParts {
  readonly items: Pick<Items, "each" | "bestMatch" | "figures">;
  readonly randomBytes: (length: number) => Uint8Array;
  /** The programme guides of one external playlist, or of all lists. */
  guides(externalPlaylistId: number | undefined): readonly string[];
}

/** Items whose text is made at once: some 30 KiB. */
const BATCH_ITEMS = 100;
/** In one attribute; players fetch each of them. */
const MAX_NAMED_GUIDES = 20;

/** How one form writes a list. */
interface Form {
  readonly head: string;
  readonly tail: string;
  entry(item: Item, source: Item, isFirst: boolean): string;
}

/**
 * The enabled items that are asked for, as a playlist that is made while it is read. Links that need no more than an id name
 * it; all others lead to the item itself (`export-links.ts`), so that no URL of another server, and none of its secrets, gets
 * into a list that anybody on the network may read.
 */
export function exportItems(parts: ExportParts, options: ExportOptions): ReadableStream<Uint8Array> {
  const form = options.format === "json" ? jsonForm(parts, options) : m3uForm(parts, options);
  const items = parts.items.each({ ...options.query, isEnabled: true })[Symbol.asyncIterator]();
  let isBegun = false;
  let isFirst = true;
  return new ReadableStream(
    {
      async pull(controller) {
        let text = isBegun ? "" : form.head;
        isBegun = true;
        for (let count = 0; count < BATCH_ITEMS; count++) {
          const { done, value: item } = await items.next();
          if (done) {
            controller.enqueue(encodeUtf8(text + form.tail));
            controller.close();
            return;
          }
          text += form.entry(item, await sourceOf(parts, item, options), isFirst);
          isFirst = false;
        }
        controller.enqueue(encodeUtf8(text));
      },
      cancel: async () => void (await items.return?.()),
    },
    { highWaterMark: 0 },
  );
}

/** The item whose content an item plays: with auto search on, its best other source. */
async function sourceOf({ items }: ExportParts, item: Item, options: ExportOptions): Promise<Item> {
  if (!item.autoSearch || options.skipAutoSearch) return item;
  return (await items.bestMatch(item.id)) ?? item;
}

function m3uForm(parts: ExportParts, options: ExportOptions): Form {
  const guides = parts
    .guides(options.query.externalPlaylistId)
    .filter((guide) => withoutLogin(guide) !== "")
    .slice(0, MAX_NAMED_GUIDES)
    .map((guide) => guide.replaceAll(",", "%2C"))
    .join(",");
  // Players know one name or the other; Kodi takes the first guide, others take all.
  const head = m3uHeader([
    ["url-tvg", guides],
    ["x-tvg-url", guides],
  ]);
  const isForEngines = options.format === "acestream";
  return {
    head,
    tail: "",
    entry(item, source) {
      const url = isForEngines ? contentLink(source, options.base) : playUrl(parts, source, options);
      const attributes: [string, string][] = [
        ["tvg-id", item.tvgId],
        ["tvg-name", item.tvgName || item.title],
        ["tvg-logo", logoOf(parts, item, options.base)],
        ["group-title", groupOf(item)],
        ["radio", item.tags.includes("radio") ? "true" : ""],
        ["acestream-autosearch", isForEngines && item.autoSearch ? "1" : ""],
      ];
      return m3uEntry({ durationSeconds: undefined, attributes, title: titleOf(item), url });
    },
  };
}

function jsonForm(parts: ExportParts, options: ExportOptions): Form {
  return {
    head: '{"playlist":[',
    tail: "]}\n",
    entry(item, source, isFirst) {
      const shown = {
        id: item.id,
        title: titleOf(item),
        category: item.category,
        subcategory: item.subcategory,
        tags: item.tags,
        content_id: source.content.contentId,
        infohash: source.content.infohash,
        url: playUrl(parts, source, options),
        is_live: item.isLive,
        is_favorite: item.isFavorite,
        tvg_id: item.tvgId,
        tvg_name: item.tvgName,
        tvg_logo: logoOf(parts, item, options.base),
        languages: item.languages,
        countries: item.countries,
      };
      return `${isFirst ? "" : ","}\n${JSON.stringify(shown)}`;
    },
  };
}

function playUrl(parts: ExportParts, item: Item, options: ExportOptions): string {
  const pid = options.generatePlayerId ? toHex(parts.randomBytes(16)) : undefined;
  return playLink(item, options, pid);
}

function titleOf(item: Item): string {
  return item.displayTitle || item.title;
}

/** All groups of an item; where it has none, what it is. */
function groupOf({ tags, subcategory, category }: Item): string {
  return tags.filter((tag) => tag !== "radio").join(";") || subcategory || category || "";
}

function logoOf({ items }: ExportParts, item: Item, base: string): string {
  const [icon] = items.figures(item).icons;
  if (!icon) return "";
  return "imageId" in icon ? `${base}/image/${icon.imageId}` : withoutLogin(icon.url);
}
