import { addressBytes, addressScope } from "../base/address.ts";
import { toHex } from "../base/bytes.ts";
import { channelNumberOf } from "../base/channel-numbers.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import type { Health } from "../health/health-contract.ts";
import { playerForm } from "../media/m3u-players.ts";
import { m3uEntry, m3uHeader } from "../media/m3u-writer.ts";
import type { ExportOptions, Item, Items } from "./contract.ts";
import { contentLink, playLink, withoutLogin } from "./export-links.ts";
import type { Guide, ListedProgramme } from "./guide/guide-contract.ts";
import { exportedChannelId } from "./guide/guide-export.ts";

interface ExportDependencies {
  readonly items: Pick<Items, "query" | "read" | "otherSources" | "figures">;
  readonly randomBytes: (length: number) => Uint8Array;
  /** The program guides of one external playlist, or of all lists. */
  guides(externalPlaylistId: number | undefined): readonly string[];
  readonly guide: Pick<Guide, "match" | "hasProgrammes" | "nowAndNext">;
  healthOf(item: Item): Health | undefined;
}

/** Sources of a channel that decide whether it is dead; as many as a player tries. */
const MAX_COMPARED_SOURCES = 7;

/** An output format. */
interface Format {
  /** `total` is the number of matches without offset and limit. */
  head(total: number): string;
  readonly tail: string;
  /** `programmes` is undefined if they are not asked for. */
  entry(
    item: Item,
    source: Item,
    isFirst: boolean,
    programmes: readonly ListedProgramme[] | undefined,
  ): string;
}

/**
 * Streams the enabled items that match the query as a playlist; pull drives it. Content that an id identifies is linked
 * by that id, everything else by the item (`export-links.ts`), so that the list never contains a URL of another server
 * with its secrets.
 */
export function exportItems(
  dependencies: ExportDependencies,
  options: ExportOptions,
): ReadableStream<Uint8Array> {
  const format =
    options.format === "json" ? jsonFormat(dependencies, options) : m3uFormat(dependencies, options);
  const query = { ...options.query, isEnabled: true };
  const reader = dependencies.items.read(query);
  let hasBegun = false;
  let isFirst = true;
  return new ReadableStream(
    {
      /** Builds a chunk of at most 100 items, about 30 KiB. */
      async pull(controller) {
        let text = hasBegun
          ? ""
          : format.head((await dependencies.items.query({ ...query, limit: 0 })).total);
        hasBegun = true;
        const items = await reader.next();
        for (const item of items) {
          const source = await sourceOf(dependencies, item, options);
          if (options.skipsDead && (await isDead(dependencies, item, options))) continue;
          const programmes = options.showsProgrammes ? await dependencies.guide.nowAndNext(item) : undefined;
          text += format.entry(item, source, isFirst, programmes);
          isFirst = false;
        }
        controller.enqueue(encodeUtf8(items.length === 0 ? text + format.tail : text));
        if (items.length === 0) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Returns the item whose content is exported: the best match if auto search is on, else the item itself. */
async function sourceOf({ items }: ExportDependencies, item: Item, options: ExportOptions): Promise<Item> {
  if (!item.autoSearch || options.skipAutoSearch) return item;
  return (await items.otherSources(item.id, 1))[0] ?? item;
}

/** Returns true if nothing that the entry of an item can play has played in its last visits. */
async function isDead(
  { items, healthOf }: ExportDependencies,
  item: Item,
  options: ExportOptions,
): Promise<boolean> {
  if (healthOf(item)?.status !== "dead") return false;
  if (!item.autoSearch || options.skipAutoSearch) return true;
  const others = await items.otherSources(item.id, MAX_COMPARED_SOURCES);
  return others.every((other) => healthOf(other)?.status === "dead");
}

function m3uFormat(dependencies: ExportDependencies, options: ExportOptions): Format {
  const { guide, items } = dependencies;
  const form = playerForm(options.player);
  // The engine's own guide has the ids of this list, and devices need no Internet for it.
  const fetched = guide.hasProgrammes
    ? [`${options.base}/epg.xml.gz`]
    : dependencies.guides(options.query.externalPlaylistId);
  const guides = fetched
    .filter((guide) => withoutLogin(guide) !== "")
    .slice(0, form.guides)
    .map((guide) => guide.replaceAll(",", "%2C"))
    .join(",");
  // Players know one of the two names. Kodi reads the first guide, other players all of them.
  const head = m3uHeader([
    ["url-tvg", guides],
    ["x-tvg-url", guides],
  ]);
  const isForEngines = options.format === "acestream";
  return {
    head: () => head,
    tail: "",
    entry(item, source) {
      const url = isForEngines
        ? contentLink(source, options.base)
        : playUrl(dependencies, item, source, options);
      const attributes: [string, string][] = [
        ["tvg-id", guide.match(item) ? exportedChannelId(item, items.figures(item)) : item.tvgId],
        ["tvg-name", item.tvgName || item.title],
        [
          "tvg-logo",
          isForEngines
            ? foreignLogoUrl(dependencies, item, options.base)
            : logoUrl(dependencies, item, options.base),
        ],
        ["group-title", groupOf(item, form.hasSeveralGroups)],
        ["radio", item.tags.includes("radio") ? "true" : ""],
        ...extraOf(item, isForEngines ? [] : catchUpOf(item, options)),
        ["acestream-autosearch", isForEngines && item.autoSearch ? "1" : ""],
      ];
      const read = attributes.filter(([name]) => form.attributes?.has(name) ?? true);
      return m3uEntry({ durationSeconds: undefined, attributes: read, title: titleOf(item), url });
    },
  };
}

function jsonFormat(dependencies: ExportDependencies, options: ExportOptions): Format {
  return {
    head: (total) => `{"total_items":${total},"playlist":[`,
    tail: "]}\n",
    entry(item, source, isFirst, programmes) {
      const shown = {
        id: item.id,
        title: titleOf(item),
        category: item.category,
        subcategory: item.subcategory,
        tags: item.tags,
        content_id: source.content.contentId,
        infohash: source.content.infohash,
        url: playUrl(dependencies, item, source, options),
        is_live: item.isLive,
        is_favorite: item.isFavorite,
        tvg_id: item.tvgId,
        tvg_name: item.tvgName,
        tvg_logo: logoUrl(dependencies, item, options.base),
        tvg_chno: channelNumberOf(item) ?? null,
        languages: item.languages,
        countries: item.countries,
        ...(programmes && { epg: programmes }),
      };
      return `${isFirst ? "" : ","}\n${JSON.stringify(shown)}`;
    },
  };
}

function playUrl(dependencies: ExportDependencies, item: Item, source: Item, options: ExportOptions): string {
  if (options.linkOf) return options.linkOf(item);
  const pid = options.generatePlayerId ? toHex(dependencies.randomBytes(16)) : undefined;
  const isChannel = source !== item && item.isLive === 1 && options.protocol === "http";
  return isChannel ? playLink(item, options, pid, true) : playLink(source, options, pid);
}

function titleOf(item: Item): string {
  return item.displayTitle || item.title;
}

/** Returns the attributes of its list entry that an export repeats, and those of catch-up. Drops URLs that may contain credentials: those of the server that
 * also has the content often do, in their path. */
function extraOf({ tvgExtra, content }: Item, catchUp: readonly [string, string][]): [string, string][] {
  const own = tvgExtra.map((text): [string, string] => {
    const equals = text.indexOf("=");
    const [name, value] = [text.slice(0, equals), text.slice(equals + 1)];
    if (!/^[a-z]+:\/\//i.test(value)) return [name, value];
    return [name, hostOf(value) === hostOf(content.url ?? "") ? "" : withoutLogin(value)];
  });
  if (catchUp.length === 0) return own;
  return [...own.filter(([name]) => !/^(catchup|timeshift|tvg-rec)/.test(name)), ...catchUp];
}

/**
 * The attributes of a channel whose past programmes this engine plays. Kodi and TiviMate replace `{utc}` by the start of a programme in
 * UNIX time, and `{duration}` by its seconds.
 *
 * CHOICE(export-catch-up): catch-up of this engine replaces that of the item's own list, whose URLs may contain credentials.
 */
function catchUpOf(item: Item, { base, protocol, catchUpDays }: ExportOptions): [string, string][] {
  const days = catchUpDays?.(item);
  if (days === undefined) return [];
  const form = protocol === "hls" ? "m3u8" : "ts";
  return [
    ["catchup", "default"],
    ["catchup-source", `${base}/catch-up/${item.id}.${form}?utc={utc}&duration={duration}`],
    ["catchup-days", String(days)],
  ];
}

function hostOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

/** Returns all groups of an item or the first one, or its category if it has none. */
function groupOf({ tags, subcategory, category }: Item, hasSeveral: boolean): string {
  const groups = tags.filter((tag) => tag !== "radio");
  return (hasSeveral ? groups : groups.slice(0, 1)).join(";") || subcategory || category || "";
}

interface LogoDependencies {
  readonly items: Pick<Items, "figures">;
}

/**
 * Returns the URL at which this engine serves an item's logo, or an empty text if it has none.
 *
 * CHOICE(export-logos): the engine fetches the logos of other servers and caches them, so that players need no Internet, and the
 * list contains no URL with secrets. Players fetch those of private addresses themselves.
 */
export function logoUrl({ items }: LogoDependencies, item: Item, base: string): string {
  const [icon] = items.figures(item).icons;
  if (!icon) return "";
  if ("imageId" in icon) return `${base}/image/${icon.imageId}`;
  if (isNamedByPrivateAddress(icon.url)) return withoutLogin(icon.url);
  return `${base}/server/api?api_version=3&method=get_channel_icon&id=${item.id}`;
}

/** The engine may not fetch such a URL for other devices, which reach it without the Internet. */
function isNamedByPrivateAddress(url: string): boolean {
  const host = (hostOf(url) ?? "").replace(/^\[|\]$/g, "");
  return addressBytes(host) !== undefined && addressScope(host) !== "global";
}

/** Returns the URL of an item's logo for other engines, which may run where this one is not reachable. */
function foreignLogoUrl({ items }: LogoDependencies, item: Item, base: string): string {
  const [icon] = items.figures(item).icons;
  return icon && "url" in icon ? withoutLogin(icon.url) : logoUrl({ items }, item, base);
}
