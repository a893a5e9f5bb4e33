// @ts-check
import { t } from "../parts/text.js";
/**
 * Sources of the list: the control API, page by page; or, on a read-only page, the playlist as it is exported to players.
 *
 * @typedef {{
 *   id: number, title: string, category: string, tags: readonly string[], groups: readonly string[], isLive: boolean, isFavorite: boolean,
 *   number: string | undefined, isEnabled: boolean, isLocked: boolean, autoSearch: boolean, iconPath: string, isPoster: boolean, infohash: string,
 *   externalPlaylistId: number, programmes: readonly { start: number, stop: number, title: string }[], health: Health | undefined,
 * }} ListItem
 * @typedef {{
 *   status: "alive" | "weak" | "dead", checked_at: number, problem?: string, start_ms?: number, bitrate?: number, width?: number,
 *   height?: number, codecs?: readonly string[], is_moving?: boolean,
 * }} Health
 * @typedef {{
 *   name: string, category: string, tag: string, isFavorite: boolean, externalPlaylistId: number | undefined,
 *   order: string,
 * }} Filter
 * @typedef {{ total: number, items: readonly ListItem[] }} ListPage
 * @typedef {{ page: (filter: Filter, offset: number, limit: number, signal: AbortSignal) => Promise<ListPage> }} ListSource
 */

/**
 * Creates a source that reads pages from the control API.
 *
 * @param {import("../parts/api.js").EngineApi} api
 * @returns {ListSource}
 */
export function controlSource(api) {
  return {
    async page(filter, offset, limit, signal) {
      const parameters = {
        ...filterParameters(filter, offset, limit),
        external_playlist_id: filter.externalPlaylistId,
      };
      const { total_items, playlist } = await api.call("playlist_get", parameters, signal);
      return { total: total_items, items: playlist.map(readItem) };
    },
  };
}

/**
 * Creates a source that reads pages of the export. It contains only enabled items, without their sources.
 *
 * @returns {ListSource}
 */
export function exportSource() {
  return {
    async page(filter, offset, limit, signal) {
      const query = new URLSearchParams({ format: "json" });
      for (const [name, value] of Object.entries(filterParameters(filter, offset, limit)))
        if (value !== undefined) query.set(name, String(value));
      const response = await fetch(`playlist/get?${query}`, { signal });
      if (!response.ok)
        throw new Error(
          (await response.text()).trim().slice(0, 300) ||
            t("The engine answered with status {status}", { status: String(response.status) }),
        );
      const { total_items, playlist } = await response.json();
      return { total: total_items, items: playlist.map(readItem) };
    },
  };
}

/**
 * Returns a page of the list with the programmes of a day.
 *
 * @param {import("../parts/api.js").EngineApi} api
 * @param {Filter} filter
 * @param {number} from UNIX time
 * @param {number} offset
 * @param {number} limit
 * @returns {Promise<ListPage>}
 */
export async function guidePage(api, filter, from, offset, limit) {
  const parameters = {
    ...filterParameters(filter, offset, limit),
    external_playlist_id: filter.externalPlaylistId,
    epg_from: from,
  };
  const { total_items, playlist } = await api.call("playlist_get", parameters);
  return { total: total_items, items: playlist.map(readItem) };
}

/**
 * Returns an item of the list; undefined if it is no longer there.
 *
 * @param {number} id
 * @returns {Promise<ListItem | undefined>}
 */
export function itemWithId(id) {
  return firstItem({ items: String(id) });
}

/**
 * Returns the channel to which its list gives a number; undefined if there is none.
 *
 * @param {number} number
 */
export function itemWithNumber(number) {
  return firstItem({ channel_number: String(number) });
}

/**
 * @param {Record<string, string>} query
 * @returns {Promise<ListItem | undefined>}
 */
async function firstItem(query) {
  const response = await fetch(
    `playlist/get?${new URLSearchParams({ format: "json", show_epg: "1", ...query })}`,
  );
  if (!response.ok) return undefined;
  const { playlist } = await response.json();
  return playlist.length > 0 ? readItem(playlist[0]) : undefined;
}

/**
 * Returns the parameters that the control API and the export share.
 *
 * @param {Filter} filter
 * @param {number} offset
 * @param {number} limit
 */
function filterParameters({ name, category, tag, isFavorite, order }, offset, limit) {
  return {
    offset,
    limit,
    sort: order === "title",
    sort_by: order === "status" ? order : undefined,
    name: name || undefined,
    category: category || undefined,
    subcategory: tag || undefined,
    is_favorite: isFavorite || undefined,
    show_epg: true,
  };
}

/**
 * Removes accents and case for comparisons.
 *
 * @param {string} text
 */
function folded(text) {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().trim();
}

/**
 * Converts an item of the control API or the export, which uses the same names but omits some.
 *
 * @param {any} item
 * @returns {ListItem}
 */
export function readItem(item) {
  const icons = item.icons ?? (item.tvg_logo ? [{ url: item.tvg_logo }] : []);
  return {
    id: item.id,
    title: item.display_title || item.title || t("Item {id}", { id: String(item.id) }),
    category: item.category ?? "",
    tags: item.tags ?? [],
    groups: uniqueNames([...(item.tags ?? []), item.subcategory]),
    isLive: item.is_live === 1,
    isFavorite: item.is_favorite,
    isEnabled: item.enabled ?? true,
    isLocked: item.locked ?? false,
    autoSearch: item.auto_search ?? false,
    isPoster: icons.length > 0 && icons[0].type === "poster",
    iconPath: icons.length === 0 ? "" : iconPath(item.id, String(icons[0].url)),
    infohash: item.infohash ?? "",
    number: item.tvg_chno ?? undefined,
    externalPlaylistId: item.external_playlist_id ?? -1,
    programmes: item.epg ?? [],
    health: item.health,
  };
}

/**
 * Removes names that differ only in case or accents. The subcategory of an item often equals one of its tags.
 *
 * @param {readonly (string | undefined)[]} names
 */
function uniqueNames(names) {
  const byFold = new Map();
  for (const name of names) if (name && !byFold.has(folded(name))) byFold.set(folded(name), name);
  return [...byFold.values()];
}

/**
 * Returns the path of an icon on the engine. The page never loads images from other servers, which would learn the user's
 * address.
 *
 * @param {number} id
 * @param {string} url
 */
function iconPath(id, url) {
  const own = url.startsWith(`${location.origin}/image/`) ? new URL(url).pathname.slice(1) : undefined;
  return (
    own ??
    `server/api?${new URLSearchParams({ api_version: "3", method: "get_channel_icon", id: String(id) })}`
  );
}
