// @ts-check
import { problemText, sentence } from "../parts/api.js";
import { confirmFirst } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { saveFile } from "../parts/rows.js";
import { locale, t } from "../parts/text.js";

const POLL_MS = 500;
/** A restore takes seconds for 100,000 channels, and the engine starts again after it. */
const RESTORE_TIMEOUT_MS = 300_000;

/** @typedef {{ [kind in keyof typeof KINDS]: number }} Contents */

/** What a backup contains, by the names of `POST api/restore`. */
const KINDS = {
  channels: t("Channels and films of the playlist"),
  playlists: t("Subscribed lists"),
  guides: t("Programme guides"),
  accounts: t("Accounts"),
  broadcasts: t("Broadcasts"),
  recordings: t("Recordings and timers"),
  watched: t("Films to continue"),
  files: t("Logos, transport files and keys"),
};

/**
 * The card Backup: downloads a backup and restores one, which only the engine's own computer may do.
 *
 * @param {import("../parts/api.js").EngineApi} api
 */
export function backupCard(api) {
  const state = make("p", { role: "status" });
  const reload = action(t("Reload the page"), () => location.reload());
  const file = make("input", { type: "file", hidden: true, id: "backup-file" });
  reload.hidden = true;

  /**
   * @param {string} text
   * @param {"soft" | "problem" | ""} style
   */
  function tell(text, style) {
    state.className = style;
    state.textContent = text;
  }

  async function download() {
    tell(t("The engine makes the backup…"), "soft");
    try {
      const { name, file: saved } = await api.file("get_backup");
      saveFile(name, saved);
      tell(t("The browser saves {name}.", { name }), "");
    } catch (error) {
      tell(problemText(error), "problem");
    }
  }

  async function check() {
    const [chosen] = file.files ?? [];
    if (chosen === undefined) return;
    reload.hidden = true;
    tell(t("The engine checks {name}…", { name: chosen.name }), "soft");
    try {
      const { backup, present } = await api.upload("api/restore", chosen);
      tell("", "");
      confirmFirst(
        t("Restore {name}?", { name: chosen.name }),
        comparison(backup, present),
        t("Replace and restart"),
        restore,
      );
    } catch (error) {
      tell(problemText(error), "problem");
    } finally {
      // The same file can be chosen again.
      file.value = "";
    }
  }

  async function restore() {
    await api.call("restore_backup");
    void followRestore();
  }

  /** Waits until the engine runs again, and shows the outcome. */
  async function followRestore() {
    tell(t("The engine restores the backup and starts again…"), "soft");
    const deadline = Date.now() + RESTORE_TIMEOUT_MS;
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      try {
        const { outcome } = await api.call("get_restore");
        if (outcome === null) continue;
        reload.hidden = outcome.problem !== null;
        if (outcome.problem === null)
          tell(t("The backup is restored: {records} records.", { records: outcome.records }), "");
        else
          tell(
            t("The backup was not restored, and nothing has changed. {problem}", {
              problem: sentence(outcome.problem),
            }),
            "problem",
          );
        return;
      } catch (error) {
        // The engine does not answer while it restarts.
        if (Date.now() > deadline) return tell(problemText(error), "problem");
      }
    }
  }

  file.addEventListener("change", check);
  const buttons = make(
    "div",
    { class: "buttons" },
    action(t("Download a backup"), download),
    action(t("Restore a backup…"), () => file.click()),
    file,
  );
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
      ? buttons
      : make(
          "p",
          { class: "soft" },
          t("A backup can be downloaded and restored only on the engine's computer."),
        ),
    state,
    reload,
  );
}

/**
 * Shows what a restore replaces.
 *
 * @param {Contents} backup
 * @param {Contents} present
 */
function comparison(backup, present) {
  const kinds = /** @type {(keyof typeof KINDS)[]} */ (Object.keys(KINDS));
  const rows = kinds
    .filter((kind) => backup[kind] > 0 || present[kind] > 0)
    .map((kind) =>
      make(
        "tr",
        {},
        make("th", { scope: "row" }, KINDS[kind]),
        make("td", {}, present[kind].toLocaleString(locale())),
        make("td", {}, backup[kind].toLocaleString(locale())),
      ),
    );
  const heads = [t("Content"), t("Now"), t("After")].map((text) => make("th", { scope: "col" }, text));
  return make(
    "div",
    {},
    make(
      "p",
      {},
      t(
        "The backup replaces everything that the engine has stored, also the access token. Playback stops while the engine starts again. The former database is kept as a copy in the data folder.",
      ),
    ),
    make("table", { class: "counts" }, make("tr", {}, ...heads), ...rows),
  );
}
