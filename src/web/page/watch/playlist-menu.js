// @ts-check

import { openDialog, openForm } from "../parts/dialog.js";
import { action, field, make } from "../parts/dom.js";
import { appUrl } from "../parts/place.js";
import { t } from "../parts/text.js";
import { openCatchUpDialog } from "./catch-up.js";
import { openChannelSources } from "./channel-sources.js";
import { openChannelChoice } from "./guide.js";
import { openRecordDialog } from "./recordings.js";

/**
 * @typedef {import("./playlist-source.js").ListItem} ListItem
 * @typedef {{ id: string, type: string, name: string }} Player
 * @typedef {{
 *   api: import("../parts/api.js").EngineApi,
 *   canEdit: () => boolean,
 *   players: () => Promise<readonly Player[]>,
 *   play: (item: ListItem) => void,
 *   copy: (text: string) => void,
 *   notify: (text: string) => void,
 *   changed: (item: ListItem) => void,
 *   removed: (id: number) => void,
 *   reload: () => void,
 *   categories: string,
 * }} MenuOptions
 */

/**
 * Opens the menu of an item: a dialog with buttons, usable with touch, mouse and remote control.
 *
 * @param {ListItem} item
 * @param {MenuOptions} options
 */
export async function openItemMenu(item, options) {
  const { api } = options;
  // A function that `work` returns changes the list. It runs after the dialog has closed and the focus has returned.
  /** @type {(label: string, work: () => unknown, style?: string) => HTMLButtonElement} */
  const choice = (label, work, style) =>
    action(
      label,
      async () => {
        try {
          const afterwards = await work();
          dialog.close();
          if (typeof afterwards === "function") afterwards();
        } catch (error) {
          dialog.problem(error);
        }
      },
      style,
    );
  /** @type {(method: string, value: boolean, change: Partial<ListItem>) => Promise<() => void>} */
  const set = async (method, value, change) => {
    await api.call(method, { id: item.id, value });
    return () => options.changed({ ...item, ...change });
  };
  const sheet = make("div", { class: "sheet" });
  sheet.append(
    choice(t("Play here"), () => () => options.play(item), "primary"),
    choice(t("Copy link for a player"), async () => {
      const link = await playerLink(item);
      return () => options.copy(link);
    }),
  );
  if (options.canEdit()) {
    const { isEnabled, isLocked, id } = item;
    sheet.append(
      choice(t("Edit title, groups and logo…"), () => () => openItemForm(item, options)),
      choice(t("Past programmes…"), () => () => openCatchUpDialog(item, options)),
      choice(t("Record…"), () => () => openRecordDialog(item, options)),
      choice(t("Programme guide…"), () => () => openChannelChoice(item, options)),
      choice(t("Sources of this channel…"), () => () => openChannelSources(item, options)),
      choice(isLocked ? t("Unlock") : t("Lock (playlist updates do not change or delete it)"), () =>
        set("playlist_item_set_locked", !isLocked, { isLocked: !isLocked }),
      ),
      choice(isEnabled ? t("Hide from other players") : t("Show to other players"), () =>
        set("playlist_item_set_enabled", !isEnabled, { isEnabled: !isEnabled }),
      ),
      choice(
        t("Move to trash"),
        async () => {
          await api.call("playlist_delete_item", { id });
          return () => {
            options.removed(id);
            options.notify(t("Moved to the trash"));
          };
        },
        "danger",
      ),
    );
  }
  const dialog = openDialog(item.title, sheet);
  for (const player of await options.players())
    sheet.children[1]?.after(
      choice(
        player.type === "proxy"
          ? t("Open in {player} on the engine's computer", { player: player.name })
          : t("Play on {player}", { player: player.name }),
        async () => {
          await api.call("open_in_player", { player_id: player.id, playlist_item_id: item.id });
          options.notify(
            player.type === "proxy"
              ? t("Opened in {player}", { player: player.name })
              : t("Playing on {player}", { player: player.name }),
          );
        },
      ),
    );
}

/**
 * Returns the URL that plays an item in any player of the network. The engine decides whether it contains an id or a link.
 *
 * @param {ListItem} item
 */
async function playerLink({ id }) {
  const fallback = appUrl(`play/0/${id}`);
  const response = await fetch(`playlist/get?${new URLSearchParams({ format: "json", items: String(id) })}`);
  if (!response.ok) return fallback;
  const { playlist } = await response.json();
  // The export omits items that are hidden from players.
  return playlist[0]?.url ?? fallback;
}

/**
 * @param {ListItem} item
 * @param {MenuOptions} options
 */
function openItemForm(item, { api, reload, categories }) {
  const title = make("input", {
    type: "text",
    value: item.title,
    maxlength: 300,
    required: true,
    dir: "auto",
  });
  const category = make("input", { type: "text", value: item.category, maxlength: 128, list: categories });
  const tags = make("input", { type: "text", value: item.tags.join(", "), dir: "auto" });
  const logo = make("input", { type: "file", accept: "image/png,image/jpeg,image/gif,image/webp" });
  const fields = [
    field(t("Title"), title),
    field(t("Category"), category, t("For example tv, movies, music")),
    field(t("Groups"), tags, t("Separated by commas")),
    field(t("Logo"), logo, t("PNG, JPEG, GIF or WebP")),
  ];
  openForm(t("Edit item"), fields, t("Save"), async () => {
    const names = tags.value.split(",").map((tag) => tag.trim());
    const changes = {
      title: title.value === item.title ? undefined : title.value,
      category: category.value === item.category ? undefined : category.value,
      ...(tags.value === item.tags.join(", ")
        ? {}
        : { tags: JSON.stringify(names.filter((tag) => tag !== "")) }),
      logo_file: logo.files?.[0],
    };
    await api.call("playlist_update_item", { id: item.id, ...changes });
    reload();
  });
}
