// @ts-check
import { problemText } from "./api.js";
import { confirmFirst } from "./playlist-dialog.js";
import { action, make } from "./playlist-dom.js";
import { readItem } from "./playlist-source.js";

/** Items that nobody owns; this page knows no others. */
const OWNER = "_no_owner_";
/** More rows are not shown at once. */
const MAX_SHOWN = 200;

/**
 * @typedef {{
 *   api: import("./api.js").EngineApi,
 *   list: HTMLElement, status: HTMLElement, empty: HTMLButtonElement, problem: HTMLElement,
 *   changed: () => void,
 *   say: (text: string) => void,
 * }} TrashParts
 */

/** What was thrown away, until it is emptied. */
export class Trash {
  #parts;

  /** @param {TrashParts} parts */
  constructor(parts) {
    this.#parts = parts;
    const { api, empty } = parts;
    empty.addEventListener("click", () =>
      confirmFirst(
        "Empty the trash?",
        "What is in it is gone for good, but for locked items.",
        "Empty it",
        async () => {
          await api.call("playlist_trash_clear", { owner: OWNER });
          await this.reload();
          parts.say("The trash is empty");
        },
      ),
    );
  }

  /** Shows it as it is now. */
  async reload() {
    const { api, list, status, empty, problem } = this.#parts;
    try {
      const { data } = await api.call("playlist_trash_get", { owner: OWNER });
      // What went last comes first.
      const items = data.reverse().map(readItem);
      list.replaceChildren(
        ...items
          .slice(0, MAX_SHOWN)
          .map((/** @type {import("./playlist-source.js").ListItem} */ item) => this.#row(item)),
      );
      const more = items.length > MAX_SHOWN ? `; the last ${MAX_SHOWN} are shown` : "";
      status.textContent =
        items.length === 0 ? "The trash is empty." : `${items.length.toLocaleString()} in the trash${more}`;
      empty.hidden = items.length === 0;
      problem.hidden = true;
    } catch (error) {
      problem.textContent = problemText(error);
      problem.hidden = false;
    }
  }

  /** @param {import("./playlist-source.js").ListItem} item */
  #row({ id, title }) {
    const { api, changed, say, problem } = this.#parts;
    const restore = action("Restore", async () => {
      try {
        await api.call("playlist_restore_item", { owner: OWNER, id });
        say("Restored");
        changed();
        await this.reload();
      } catch (error) {
        problem.textContent = problemText(error);
        problem.hidden = false;
      }
    });
    restore.setAttribute("data-column", "0");
    restore.setAttribute("aria-label", `Restore ${title.slice(0, 200)}`);
    return make(
      "li",
      { class: "trashed" },
      make("bdi", { class: "item-title" }, title.slice(0, 300)),
      restore,
    );
  }
}
