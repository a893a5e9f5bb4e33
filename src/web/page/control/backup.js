// @ts-check
import { problemText } from "../parts/api.js";
import { action, make } from "../parts/dom.js";
import { t } from "../parts/text.js";

/** How long the browser may take to save the file. */
const SAVE_MS = 60_000;

/**
 * The card Backup: downloads a backup, which only the engine's own computer may do.
 *
 * @param {import("../parts/api.js").EngineApi} api
 */
export function backupCard(api) {
  const state = make("p", { role: "status" });
  async function download() {
    state.className = "soft";
    state.textContent = t("The engine makes the backup…");
    try {
      const { name, file } = await api.file("get_backup");
      const link = make("a", { href: URL.createObjectURL(file), download: name });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), SAVE_MS);
      state.textContent = t("The browser saves {name}.", { name });
    } catch (error) {
      state.className = "problem";
      state.textContent = problemText(error);
    }
  }
  return make(
    "section",
    { class: "card" },
    make("h2", {}, t("Backup")),
    make(
      "p",
      {},
      t(
        "One file with the playlist, accounts, logos, the access token and the keys of your broadcasts. It does not contain the cache, recordings or settings. Keep it private: it grants access to the engine and to your broadcasts.",
      ),
    ),
    api.isLocal
      ? make("div", { class: "buttons" }, action(t("Download a backup"), download))
      : make("p", { class: "soft" }, t("A backup can be downloaded only on the engine's computer.")),
    state,
    make(
      "p",
      {},
      t("To restore it, stop the engine and run this command:"),
      " ",
      make("code", {}, "sluice restore FILE"),
    ),
  );
}
