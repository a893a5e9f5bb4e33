// @ts-check
import { EngineApi, problemText } from "../parts/api.js";
import { byId, make } from "../parts/dom.js";
import { t } from "../parts/text.js";
import { listenForArrows } from "./list-keys.js";
import { addFiles, addLink } from "./playlist-add.js";
import { PlaylistList } from "./playlist-list.js";
import { openItemMenu } from "./playlist-menu.js";
import { Share, showReadOnly } from "./playlist-share.js";
import { controlSource, exportSource, guidePage, itemWithId } from "./playlist-source.js";
import { Subscriptions } from "./playlist-subscriptions.js";
import { connectTabs } from "./playlist-tabs.js";
import { PlaylistTasks } from "./playlist-tasks.js";
import { Trash } from "./playlist-trash.js";

/** Debounces the search while the user types. */
const TYPING_DEBOUNCE_MS = 250;
/** The number of values that a filter suggests; the user can type others. */
const MAX_SUGGESTIONS = 300;
const CATEGORIES = "playlist-categories";
/** The filter that all items match. */
const ALL = {
  ...{ name: "", category: "", tag: "", isFavorite: false, externalPlaylistId: undefined },
  order: "added",
};

/**
 * @typedef {import("./playlist-source.js").ListItem} ListItem
 * @typedef {{
 *   live: import("../parts/live-data.js").LiveData,
 *   play: (item: ListItem) => void,
 *   copy: (text: string) => void,
 *   notify: (text: string) => void,
 *   onImported: () => void,
 *   onRights: (rights: import("../parts/api.js").Rights) => void,
 * }} PlaylistOptions
 * @typedef {{
 *   addLink: (text: string) => Promise<void>, addFile: (file: File) => Promise<void>,
 *   neighbour: (id: number, step: 1 | -1) => Promise<ListItem | undefined>,
 *   itemAt: (index: number) => Promise<ListItem | undefined>,
 *   itemWithId: (id: number) => Promise<ListItem | undefined>,
 *   watchTasks: () => void, api: EngineApi,
 *   page: (filter: Partial<import("./playlist-source.js").Filter>, offset: number, limit: number) =>
 *     Promise<import("./playlist-source.js").ListPage>,
 *   guidePage: (from: number, offset: number, limit: number) => Promise<import("./playlist-source.js").ListPage>,
 * }} Playlist
 */

/**
 * Connects the playlist of the page with the engine.
 *
 * @param {PlaylistOptions} options
 * @returns {Playlist}
 */
export function connectPlaylist({ live, play, copy, notify, onImported, onRights }) {
  const api = new EngineApi();
  const page = findPlaylist();
  const readOnlySource = exportSource();
  /** @type {import("../parts/api.js").Rights} */
  let rights = "read-only";
  const seen = { categories: new Set(["tv", "movies", "music"]), tags: new Set() };

  const filter = () => ({
    name: page.search.value.trim(),
    category: page.category.value,
    tag: page.tag.value.trim(),
    isFavorite: page.favorites.checked,
    externalPlaylistId: page.from.value === "" ? undefined : Number(page.from.value),
    order: page.sort.value,
  });
  const isFiltered = () => {
    const { name, category, tag, isFavorite, externalPlaylistId } = filter();
    return name !== "" || category !== "" || tag !== "" || isFavorite || externalPlaylistId !== undefined;
  };
  const showTag = (/** @type {string} */ tag) => {
    page.tag.value = tag;
    list.reload();
  };
  /** @param {ListItem} item */
  const toggleFavorite = async (item) => {
    const isFavorite = !item.isFavorite;
    list.replace({ ...item, isFavorite });
    try {
      await api.call("playlist_item_set_favorite", { id: item.id, value: isFavorite });
    } catch (error) {
      list.replace(item);
      notify(problemText(error));
    }
  };
  const canEdit = () => rights === "full";
  const menu = {
    ...{ api, canEdit, play, copy, notify, categories: CATEGORIES },
    players: () => playersOf(api),
    changed: (/** @type {ListItem} */ item) => list.replace(item),
    removed: (/** @type {number} */ id) => list.remove(id),
    reload: () => void list.reload(),
  };

  const list = new PlaylistList({
    ...{ list: page.items, status: page.count, end: page.end, problem: page.problem, filter },
    source: () => (canEdit() ? controlSource(api) : readOnlySource),
    actions: () => ({
      ...{ play, showTag },
      toggleFavorite: canEdit() ? toggleFavorite : undefined,
      openMenu: (item) => void openItemMenu(item, menu),
    }),
    onPage({ items, total }) {
      page.nothing.hidden = total > 0 || isFiltered();
      page.notFound.hidden = total > 0 || !isFiltered();
      page.filters.hidden = total === 0 && !isFiltered();
      page.head.hidden = page.filters.hidden;
      for (const { category, groups } of items) {
        if (category !== "" && seen.categories.size < MAX_SUGGESTIONS) seen.categories.add(category);
        for (const group of groups) if (seen.tags.size < MAX_SUGGESTIONS) seen.tags.add(group);
      }
      showSuggestions(page, seen);
    },
  });
  const share = new Share({ api, copy });
  const subscriptions = new Subscriptions({
    ...{ api, list: page.subscriptions, empty: page.noSubscriptions, notify, categories: CATEGORIES },
    show({ id }) {
      page.from.value = String(id);
      tabs.open("items");
      list.reload();
    },
    loaded(all) {
      showSources(page.from, all);
      share.showLists(all);
      tabs.mark(
        "subscriptions",
        all.some(({ problem }) => problem),
      );
    },
    started() {
      tabs.open("subscriptions");
      tasks.watch();
    },
    changed: () => void list.reload(),
  });
  const trash = new Trash({
    ...{
      api,
      list: page.trashed,
      status: page.trashCount,
      empty: page.emptyTrash,
      problem: page.trashProblem,
      notify,
    },
    changed: () => void list.reload(),
  });
  const tasks = new PlaylistTasks(api, live, page.tasks, () => {
    list.reload();
    onImported();
    reloadSubscriptions();
  });
  const tabs = connectTabs(page.tabs, (name) => {
    if (!canEdit()) return;
    if (name === "trash") trash.reload();
    if (name === "subscriptions") reloadSubscriptions();
  });
  const adding = {
    ...{ api, notify },
    added: () => void list.reload(),
    importing: (/** @type {number} */ taskId) => tasks.watch(taskId),
    subscribe: (/** @type {string} */ url) => subscriptions.openNew(url),
  };

  async function reloadSubscriptions() {
    try {
      await subscriptions.reload();
    } catch (error) {
      notify(problemText(error));
    }
  }

  /** Determines the rights of this page, and shows the matching controls. */
  async function enter() {
    try {
      rights = await api.enter();
    } catch (error) {
      page.problem.textContent = problemText(error);
      page.problem.hidden = false;
      page.retry.hidden = false;
      return;
    }
    page.retry.hidden = true;
    page.problem.hidden = true;
    page.card.dataset.rights = rights;
    onRights(rights);
    tabs.allow(canEdit() ? ["items", "subscriptions", "trash", "share"] : ["items", "share"]);
    void share.showAddresses();
    page.readOnly.hidden = true;
    if (!canEdit()) showReadOnly(page.readOnly, api, enter);
    await list.reload();
    if (!canEdit()) return;
    await reloadSubscriptions();
    tasks.watch();
  }

  listenForFilters(page, () => void list.reload());
  listenForArrows(page.items);
  listenForArrows(page.trashed);
  page.retry.addEventListener("click", () => void enter());
  for (const button of page.subscribe) button.addEventListener("click", () => subscriptions.openNew());
  for (const button of page.addFiles) button.addEventListener("click", () => page.files.click());
  /** @param {readonly File[]} files */
  const add = async (files) => {
    tabs.open("items");
    page.problem.hidden = true;
    page.upload.hidden = false;
    page.uploadName.textContent = t("Uploading {names}", {
      names: files.map(({ name }) => name).join(", "),
    }).slice(0, 200);
    try {
      await addFiles(files, adding);
    } catch (error) {
      page.problem.textContent = problemText(error);
      page.problem.hidden = false;
    } finally {
      page.upload.hidden = true;
    }
  };
  page.files.addEventListener("change", async () => {
    const files = [...(page.files.files ?? [])];
    page.files.value = "";
    await add(files);
  });
  enter();
  return {
    addLink: (text) => addLink(text, adding),
    addFile: (file) => add([file]),
    neighbour: (id, step) => list.neighbour(id, step),
    itemAt: (index) => list.itemAt(index),
    itemWithId,
    watchTasks: () => tasks.watch(),
    api,
    page: (part, offset, limit) =>
      (canEdit() ? controlSource(api) : readOnlySource).page(
        { ...ALL, ...part },
        offset,
        limit,
        new AbortController().signal,
      ),
    guidePage: (from, offset, limit) =>
      canEdit()
        ? guidePage(api, filter(), from, offset, limit)
        : readOnlySource.page(filter(), offset, limit, new AbortController().signal),
  };
}

/** Finds the elements of the playlist. */
function findPlaylist() {
  return {
    card: byId("playlist", HTMLElement),
    tabs: byId("playlist-tabs", HTMLElement),
    upload: byId("playlist-upload", HTMLElement),
    uploadName: /** @type {HTMLElement} */ (document.querySelector("#playlist-upload bdi")),
    tasks: byId("playlist-tasks", HTMLElement),
    readOnly: byId("playlist-read-only", HTMLElement),
    filters: byId("playlist-filters", HTMLElement),
    search: byId("playlist-search", HTMLInputElement),
    category: byId("playlist-category", HTMLSelectElement),
    tag: byId("playlist-tag", HTMLInputElement),
    favorites: byId("playlist-favorites", HTMLInputElement),
    from: byId("playlist-from", HTMLSelectElement),
    sort: byId("playlist-sort", HTMLSelectElement),
    clear: byId("playlist-clear", HTMLButtonElement),
    head: byId("playlist-list-head", HTMLElement),
    count: byId("playlist-count", HTMLElement),
    problem: byId("playlist-problem", HTMLElement),
    retry: byId("playlist-retry", HTMLButtonElement),
    items: byId("playlist-items", HTMLElement),
    end: byId("playlist-end", HTMLElement),
    nothing: byId("playlist-nothing", HTMLElement),
    notFound: byId("playlist-not-found", HTMLElement),
    files: byId("playlist-files", HTMLInputElement),
    addFiles: document.querySelectorAll("[data-add-files]"),
    subscribe: document.querySelectorAll("[data-subscribe]"),
    subscriptions: byId("subscription-list", HTMLElement),
    noSubscriptions: byId("no-subscriptions", HTMLElement),
    trashed: byId("trash-list", HTMLElement),
    trashCount: byId("trash-count", HTMLElement),
    emptyTrash: byId("trash-empty", HTMLButtonElement),
    trashProblem: byId("trash-problem", HTMLElement),
  };
}

/**
 * @param {ReturnType<typeof findPlaylist>} page
 * @param {() => void} changed
 */
function listenForFilters(page, changed) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const debounced = () => {
    clearTimeout(timer);
    timer = setTimeout(changed, TYPING_DEBOUNCE_MS);
  };
  page.search.addEventListener("input", debounced);
  page.tag.addEventListener("input", debounced);
  for (const choice of [page.category, page.from, page.sort, page.favorites])
    choice.addEventListener("change", changed);
  page.clear.addEventListener("click", () => {
    for (const input of [page.search, page.tag, page.category, page.from]) input.value = "";
    page.favorites.checked = false;
    changed();
    page.search.focus();
  });
}

/**
 * Fills the filters with the categories and groups of the items loaded so far.
 *
 * @param {ReturnType<typeof findPlaylist>} page
 * @param {{ categories: Set<string>, tags: Set<string> }} seen
 */
function showSuggestions(page, seen) {
  const { category } = page;
  const chosen = category.value;
  const sorted = (/** @type {Set<string>} */ values) => [...values].sort((a, b) => a.localeCompare(b));
  const names = sorted(seen.categories);
  const options = names.map((value) => make("option", { value }, value));
  category.replaceChildren(make("option", { value: "" }, t("All categories")), ...options);
  category.value = names.includes(chosen) ? chosen : "";
  byId(CATEGORIES, HTMLElement).replaceChildren(...names.map((value) => make("option", { value })));
  byId("playlist-tags", HTMLElement).replaceChildren(
    ...sorted(seen.tags).map((value) => make("option", { value })),
  );
}

/**
 * @param {HTMLSelectElement} from
 * @param {readonly import("./playlist-subscriptions.js").Subscription[]} subscriptions
 */
function showSources(from, subscriptions) {
  const chosen = from.value;
  from.replaceChildren(
    make("option", { value: "" }, t("All sources")),
    make("option", { value: "-1" }, t("Added manually")),
    ...subscriptions.map(({ id, name }) => make("option", { value: id }, name.slice(0, 100))),
  );
  from.value = chosen;
  if (from.selectedIndex < 0) from.value = "";
}

/**
 * Returns the players that the engine can start; none if the request fails.
 *
 * @param {EngineApi} api
 * @returns {Promise<readonly { id: string, type: string, name: string }[]>}
 */
async function playersOf(api) {
  try {
    return (await api.call("get_available_players")).players;
  } catch {
    return []; // The menu works without them.
  }
}
