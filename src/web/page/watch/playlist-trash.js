// @ts-check
import { problemText } from "../parts/api.js";
import { confirmFirst } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { t } from "../parts/text.js";
import { readItem } from "./playlist-source.js";

/** The owner of items without an owner, the only ones that this page shows. */
const OWNER = "_no_owner_";
/** The number of rows shown at once. */
const MAX_SHOWN = 200;

/**
 * @typedef {{
 *   api: import("../parts/api.js").EngineApi,
 *   list: HTMLElement, status: HTMLElement, empty: HTMLButtonElement, problem: HTMLElement,
 *   changed: () => void,
 *   notify: (text: string) => void,
 * }} TrashOptions
 */

/** The tab “Trash”. */
export class Trash {
  #options;

  /** @param {TrashOptions} options */
  constructor(options) {
    this.#options = options;
    const { api, empty } = options;
    empty.addEventListener("click", () =>
      confirmFirst(
        t("Empty the trash?"),
        t("This permanently deletes all items in the trash."),
        t("Empty the trash"),
        async () => {
          await api.call("playlist_trash_clear", { owner: OWNER });
          await this.reload();
          options.notify(t("The trash is empty"));
        },
      ),
    );
  }

  /** Loads and shows the items in the trash. */
  async reload() {
    const { api, list, status, empty, problem } = this.#options;
    try {
      const { data } = await api.call("playlist_trash_get", { owner: OWNER });
      // The engine returns items in the order in which they were added; the newest come first here.
      const items = data.reverse().map(readItem);
      list.replaceChildren(
        ...items
          .slice(0, MAX_SHOWN)
          .map((/** @type {import("./playlist-source.js").ListItem} */ item) => this.#row(item)),
      );
      const more =
        items.length > MAX_SHOWN ? `; ${t("the newest {number} are listed", { number: MAX_SHOWN })}` : "";
      status.textContent =
        items.length === 0
          ? t("The trash is empty.")
          : `${t("{count} items in the trash", { count: items.length })}${more}`;
      empty.hidden = items.length === 0;
      problem.hidden = true;
    } catch (error) {
      problem.textContent = problemText(error);
      problem.hidden = false;
    }
  }

  /** @param {import("./playlist-source.js").ListItem} item */
  #row({ id, title }) {
    const { api, changed, notify, problem } = this.#options;
    const restore = action(t("Restore"), async () => {
      try {
        await api.call("playlist_restore_item", { owner: OWNER, id });
        notify(t("Restored"));
        changed();
        await this.reload();
      } catch (error) {
        problem.textContent = problemText(error);
        problem.hidden = false;
      }
    });
    restore.setAttribute("data-column", "0");
    restore.setAttribute("aria-label", t("Restore {title}", { title: title.slice(0, 200) }));
    return make(
      "li",
      { class: "trashed" },
      make("bdi", { class: "item-title" }, title.slice(0, 300)),
      restore,
    );
  }
}
