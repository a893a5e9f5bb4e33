// @ts-check
/**
 * Where the list comes from: the control API, by pages; or, for who may not call it, the list as players get it.
 *
 * @typedef {{
 *   id: number, title: string, category: string, tags: readonly string[], groups: readonly string[], isLive: boolean, isFavorite: boolean,
 *   isEnabled: boolean, isLocked: boolean, autoSearch: boolean, iconPath: string, infohash: string,
 *   externalPlaylistId: number,
 * }} ListItem
 * @typedef {{
 *   name: string, category: string, tag: string, isFavorite: boolean, externalPlaylistId: number | undefined,
 *   isByTitle: boolean,
 * }} Filter
 * @typedef {{ total: number, items: readonly ListItem[], isCut?: boolean }} ListPage
 * @typedef {{ page: (filter: Filter, offset: number, limit: number, signal: AbortSignal) => Promise<ListPage> }} ListSource
 */

/** So many items of a list that has no pages are held; a television has little memory. */
const MAX_HELD_ITEMS = 20_000;
/** A line of that list is never longer: titles, tags and URLs of an item are bounded. */
const MAX_LINE_CHARACTERS = 200_000;

/**
 * All that the control API tells, a page at a time.
 *
 * @param {import("./api.js").EngineApi} api
 * @returns {ListSource}
 */
export function controlSource(api) {
  return {
    async page({ name, category, tag, isFavorite, externalPlaylistId, isByTitle }, offset, limit, signal) {
      const parameters = {
        offset,
        limit,
        sort: isByTitle,
        name: name || undefined,
        category: category || undefined,
        subcategory: tag || undefined,
        is_favorite: isFavorite || undefined,
        external_playlist_id: externalPlaylistId,
      };
      const { total_items, playlist } = await api.call("playlist_get", parameters, signal);
      return { total: total_items, items: playlist.map(readItem) };
    },
  };
}

/**
 * The list as players get it, read once and looked through here. It tells enabled items only, and nothing of their sources.
 *
 * @returns {ListSource & { reload: () => void }}
 */
export function exportSource() {
  /** @type {Promise<{ items: readonly ListItem[], isCut: boolean }> | undefined} */
  let held;
  return {
    reload() {
      held = undefined;
    },
    async page(filter, offset, limit, signal) {
      held ??= readExport();
      held.catch(() => {
        held = undefined; // The next look tries again.
      });
      const { items: all, isCut } = await held;
      signal.throwIfAborted();
      const part = folded(filter.name);
      const fits = all.filter(
        (item) =>
          (part === "" || folded(item.title).includes(part)) &&
          (filter.category === "" || item.category === filter.category) &&
          (filter.tag === "" || item.groups.includes(filter.tag)) &&
          (!filter.isFavorite || item.isFavorite),
      );
      if (filter.isByTitle) fits.sort((a, b) => BY_TITLE.compare(a.title, b.title));
      return { total: fits.length, items: fits.slice(offset, offset + limit), isCut };
    },
  };
}

const BY_TITLE = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** @param {string} text */
function folded(text) {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().trim();
}

/** Each item is a line: so a list of any length is read without holding its text. */
async function readExport() {
  const response = await fetch("/playlist/get?format=json");
  if (!response.ok || response.body === null)
    throw new Error((await response.text()).trim().slice(0, 300) || `The engine answered ${response.status}`);
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  /** @type {ListItem[]} */
  const items = [];
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    const lines = (rest + decoder.decode(value, { stream: !done })).split("\n");
    rest = done ? "" : (lines.pop() ?? "");
    if (rest.length > MAX_LINE_CHARACTERS) throw new Error("The engine sent a list that cannot be read");
    for (const line of lines) {
      const item = lineItem(line);
      if (item !== undefined) items.push(item);
    }
    if (done) return { items, isCut: false };
    if (items.length >= MAX_HELD_ITEMS) {
      await reader.cancel();
      return { items: items.slice(0, MAX_HELD_ITEMS), isCut: true };
    }
  }
}

/** @param {string} line */
function lineItem(line) {
  const text = line.replace(/(?:,|\]\})\s*$/, "").trim();
  return text.startsWith('{"id"') ? readItem(JSON.parse(text)) : undefined;
}

/**
 * Both forms tell an item by the same names; the list of players leaves some out.
 *
 * @param {any} item
 * @returns {ListItem}
 */
export function readItem(item) {
  const icons = item.icons ?? (item.tvg_logo ? [{ url: item.tvg_logo }] : []);
  return {
    id: item.id,
    title: item.display_title || item.title || `Item ${item.id}`,
    category: item.category ?? "",
    tags: item.tags ?? [],
    groups: differentWords([...(item.tags ?? []), item.subcategory]),
    isLive: item.is_live === 1,
    isFavorite: item.is_favorite,
    isEnabled: item.enabled ?? true,
    isLocked: item.locked ?? false,
    autoSearch: item.auto_search ?? false,
    iconPath: icons.length === 0 ? "" : iconPath(item.id, String(icons[0].url)),
    infohash: item.infohash ?? "",
    externalPlaylistId: item.external_playlist_id ?? -1,
  };
}

/**
 * A subcategory is often one of the tags in other letters.
 *
 * @param {readonly (string | undefined)[]} words
 */
function differentWords(words) {
  const byFold = new Map();
  for (const word of words) if (word && !byFold.has(folded(word))) byFold.set(folded(word), word);
  return [...byFold.values()];
}

/**
 * Pictures come from the engine alone: those of other servers would tell them who looks.
 *
 * @param {number} id
 * @param {string} url
 */
function iconPath(id, url) {
  const own = url.startsWith(`${location.origin}/image/`) ? new URL(url).pathname : undefined;
  return (
    own ??
    `/server/api?${new URLSearchParams({ api_version: "3", method: "get_channel_icon", id: String(id) })}`
  );
}
