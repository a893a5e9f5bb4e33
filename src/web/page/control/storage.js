// @ts-check
import { confirmFirst } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { agoText, bytesText, contentName } from "../parts/figures.js";
import { figure, listRow } from "../parts/rows.js";
import { t } from "../parts/text.js";
import { showToast } from "../parts/toast.js";
import { backupCard } from "./backup.js";

/**
 * The result of `get_cache`.
 *
 * @typedef {{ infohash: string, name: string | null, size: number, last_use: number | null, is_open: boolean, is_kept: boolean }} CachedContent
 * @typedef {{ state: "own" | "shared" | "off", limit: number, free: number, used: number, count: number, contents: CachedContent[] }} Cache
 */

/**
 * The page Storage: what the disk cache has of each content, its removal, and the backup.
 *
 * @param {import("../parts/live-data.js").LiveContext} context
 * @returns {import("../parts/place.js").View}
 */
export function storageView({ api }) {
  const figures = make("dl", { class: "figures" });
  const note = make("p", { class: "soft", role: "status" });
  const list = make("ul", { class: "rows" });
  const clear = action(t("Delete all that is not open…"), askToClear, "danger");

  async function show() {
    const { state, limit, free, used, count, contents } = /** @type {Cache} */ (await api.call("get_cache"));
    figures.replaceChildren(
      figure(t("Used"), bytesText(used)),
      figure(t("Limit"), bytesText(limit)),
      figure(t("Free on the disk"), bytesText(free)),
    );
    clear.hidden = !contents.some((content) => !content.is_open && !content.is_kept);
    note.textContent = noteOf(state, count, contents.length);
    list.replaceChildren(...contents.map(row));
  }

  /** @param {CachedContent} content */
  function row(content) {
    const { infohash, name, size, last_use: lastUse, is_open: isOpen, is_kept: isKept } = content;
    const facts = [
      bytesText(size),
      isKept ? t("download, kept") : "",
      isOpen ? t("open") : lastUse === null ? "" : t("last used {time}", { time: agoText(lastUse) }),
    ];
    return listRow(
      contentName(name ?? infohash),
      facts,
      isOpen || isKept ? undefined : action(t("Delete"), () => askToDelete(content), "danger"),
    );
  }

  /** @param {CachedContent} content */
  function askToDelete({ infohash, name, size }) {
    confirmFirst(
      t("Delete this content from the cache?"),
      t(
        "{name}: {size} are deleted from the disk. The engine downloads the content again when it is played.",
        {
          name: name ?? infohash,
          size: bytesText(size),
        },
      ),
      t("Delete"),
      () => remove("cache_delete", { infohash }),
    );
  }

  function askToClear() {
    confirmFirst(
      t("Delete all content that is not open?"),
      t("The engine downloads the content again when it is played. Recordings and the playlist stay."),
      t("Delete all"),
      () => remove("cache_clear", {}),
    );
  }

  /**
   * @param {string} method
   * @param {{ infohash?: string }} parameters
   */
  async function remove(method, parameters) {
    const freed = await api.call(method, parameters);
    showToast(t("{size} deleted", { size: bytesText(freed) }));
    await show();
  }

  return {
    element: make(
      "div",
      { class: "page" },
      make(
        "section",
        { class: "card" },
        make("h2", {}, t("Disk cache")),
        figures,
        make(
          "div",
          { class: "buttons" },
          make(
            "a",
            { class: "button", href: "#/control/settings/cache-limit" },
            t("Change the limit: setting cache-limit"),
          ),
          clear,
        ),
        list,
        note,
      ),
      backupCard(api),
    ),
    show,
  };
}

/**
 * Describes what the list does not show.
 *
 * @param {Cache["state"]} state
 * @param {number} count
 * @param {number} shown
 */
function noteOf(state, count, shown) {
  if (state === "off") return t("The disk cache is off: the cache limit is 0.");
  if (state === "shared")
    return t(
      "Another engine manages this disk cache. Open the Control room of that engine to see its content.",
    );
  if (count === 0) return t("The disk cache is empty.");
  return count > shown
    ? t("The list shows the {shown} largest of {all} contents.", { shown, all: count })
    : "";
}
