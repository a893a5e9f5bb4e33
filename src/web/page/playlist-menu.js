// @ts-check
import { openDialog, openForm } from "./playlist-dialog.js";
import { action, field, make } from "./playlist-dom.js";

/**
 * @typedef {import("./playlist-source.js").ListItem} ListItem
 * @typedef {{ id: string, name: string }} Player
 * @typedef {{
 *   api: import("./api.js").EngineApi,
 *   canEdit: () => boolean,
 *   players: () => Promise<readonly Player[]>,
 *   play: (item: ListItem) => void,
 *   copy: (text: string) => void,
 *   say: (text: string) => void,
 *   changed: (item: ListItem) => void,
 *   removed: (id: number) => void,
 *   reload: () => void,
 *   categories: string,
 * }} MenuParts
 */

/**
 * The menu of one item: a sheet of buttons, that a thumb and a remote control reach as well as a mouse.
 *
 * @param {ListItem} item
 * @param {MenuParts} parts
 */
export async function openItemMenu(item, parts) {
  const { api } = parts;
  // What is to be done with the list is done when the dialog has closed, and given the focus back.
  /** @type {(label: string, work: () => unknown, looks?: string) => HTMLButtonElement} */
  const choice = (label, work, looks) =>
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
      looks,
    );
  /** @type {(method: string, value: boolean, change: Partial<ListItem>) => Promise<() => void>} */
  const set = async (method, value, change) => {
    await api.call(method, { id: item.id, value });
    return () => parts.changed({ ...item, ...change });
  };
  const sheet = make("div", { class: "sheet" });
  sheet.append(
    choice("Play here", () => () => parts.play(item), "primary"),
    choice("Copy link for a player", async () => {
      const link = await playerLink(item);
      return () => parts.copy(link);
    }),
  );
  if (parts.canEdit()) {
    const { isEnabled, isLocked, id } = item;
    sheet.append(
      choice("Edit title, groups and logo…", () => () => openItemForm(item, parts)),
      choice(isLocked ? "Unlock" : "Lock: updates leave it alone", () =>
        set("playlist_item_set_locked", !isLocked, { isLocked: !isLocked }),
      ),
      choice(isEnabled ? "Hide from players" : "Show to players again", () =>
        set("playlist_item_set_enabled", !isEnabled, { isEnabled: !isEnabled }),
      ),
      choice(
        "Move to trash",
        async () => {
          await api.call("playlist_delete_item", { id });
          return () => {
            parts.removed(id);
            parts.say("Moved to the trash");
          };
        },
        "danger",
      ),
    );
  }
  const dialog = openDialog(item.title, sheet);
  for (const player of await parts.players())
    sheet.children[1]?.after(
      choice(`Open in ${player.name} on the engine's computer`, async () => {
        await api.call("open_in_player", { player_id: player.id, playlist_item_id: item.id });
        parts.say(`Opened in ${player.name}`);
      }),
    );
}

/**
 * The address that plays an item anywhere in the house; the engine knows whether an id is enough for it.
 *
 * @param {ListItem} item
 */
async function playerLink({ id }) {
  const own = `${location.origin}/play/0/${id}`;
  const response = await fetch(`/playlist/get?${new URLSearchParams({ format: "json", items: String(id) })}`);
  if (!response.ok) return own;
  const { playlist } = await response.json();
  // Items that are hidden from players are not in it.
  return playlist[0]?.url ?? own;
}

/**
 * @param {ListItem} item
 * @param {MenuParts} parts
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
    field("Title", title),
    field("Category", category, "Such as tv, movies, music"),
    field("Groups", tags, "With commas between them"),
    field("Logo", logo, "PNG, JPEG, GIF or WebP"),
  ];
  openForm("Edit item", fields, "Save", async () => {
    const names = tags.value.split(",").map((tag) => tag.trim());
    const changes = {
      title: title.value === item.title ? undefined : title.value,
      category: category.value === item.category ? undefined : category.value,
      ...(tags.value === item.tags.join(", ") ? {} : { tags: names.filter((tag) => tag !== "") }),
      logo_file: logo.files?.[0],
    };
    await api.call("playlist_update_item", { id: item.id, ...changes });
    reload();
  });
}
