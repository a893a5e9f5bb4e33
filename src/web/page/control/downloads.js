// @ts-check

import { problemText } from "../parts/api.js";
import { confirmFirst } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { bytesText, contentName } from "../parts/figures.js";
import { KeyedList } from "../parts/keyed-list.js";
import { t } from "../parts/text.js";
import { showToast } from "../parts/toast.js";
import { addForm, chooseFiles } from "./download-add.js";
import { askForLimits } from "./limits.js";

/**
 * @typedef {import("../parts/api.js").EngineApi} EngineApi
 * @typedef {import("../parts/live-data.js").DownloadFigures} DownloadFigures
 */

const STATES = {
  waiting: t("Waiting"),
  downloading: t("Downloading"),
  complete: t("Complete"),
  paused: t("Paused"),
  failed: t("Failed"),
};

/**
 * The page Downloads: content that the engine fetches whole and keeps.
 *
 * @param {import("../parts/live-data.js").LiveContext} context
 * @returns {import("../parts/place.js").View}
 */
export function downloadsView({ api, live }) {
  const list = make("ul", { class: "rows" });
  const none = make(
    "p",
    { class: "soft" },
    t(
      "Nothing is downloaded. Content that you only watch stays in the disk cache until other content needs the space.",
    ),
  );
  const problem = make("p", { class: "problem", role: "status", hidden: true });
  const rows = new KeyedList(
    list,
    (/** @type {DownloadFigures} */ { infohash }) => infohash,
    () => downloadRow(api, live),
  );
  function update() {
    problem.hidden = live.problem === "";
    problem.textContent = live.problem;
    const downloads = live.get("downloads");
    if (downloads === undefined) return;
    rows.update(downloads);
    none.hidden = downloads.length > 0;
  }

  let release = () => {};
  return {
    element: make(
      "div",
      { class: "page" },
      problem,
      addForm(api),
      make("section", { class: "card" }, make("h2", {}, t("Downloads")), list, none),
    ),
    show() {
      release = live.listen(api, update);
    },
    hide: () => release(),
  };
}

/**
 * @param {EngineApi} api
 * @param {import("../parts/live-data.js").LiveData} live
 * @returns {import("../parts/keyed-list.js").Row<DownloadFigures>}
 */
function downloadRow(api, live) {
  /** @type {DownloadFigures | undefined} */
  let download;
  const title = make("bdi", { class: "row-title" });
  const state = make("small", {});
  const problem = make("small", { class: "row-problem" });
  const bar = make("progress", { "aria-label": t("Downloaded part") });
  /**
   * @param {string} label
   * @param {(download: DownloadFigures) => unknown} work
   * @param {string} [style]
   */
  const button = (label, work, style) =>
    action(
      label,
      async () => {
        try {
          if (download) await work(download);
        } catch (error) {
          showToast(problemText(error));
        }
      },
      style,
    );
  const pause = button(t("Pause"), ({ infohash }) => api.call("download_pause", { infohash }));
  const resume = button(t("Continue"), ({ infohash }) => api.call("download_resume", { infohash }));
  const files = button(t("Files…"), ({ infohash }) => chooseFiles(api, { infohash }));
  const limit = button(t("Limit…"), (present) => askForLimits(api, present.infohash, present));
  const remove = button(t("Delete"), askToDelete, "danger");
  const element = make(
    "li",
    { class: "row-item download" },
    make("span", { class: "row-text" }, title, state, problem, bar),
    make("div", { class: "buttons" }, pause, resume, files, limit, remove),
  );

  /** @param {DownloadFigures} download */
  function askToDelete({ infohash, name, held }) {
    confirmFirst(
      t("Delete this download?"),
      t("{name}: {size} are deleted from the disk, and its players stop.", { name, size: bytesText(held) }),
      t("Delete"),
      () => api.call("download_delete", { infohash }),
    );
  }

  return {
    element,
    update(changed) {
      download = changed;
      const { name, size, held } = changed;
      title.textContent = contentName(name);
      const transfer = live.get("transfers")?.find(({ infohash }) => infohash === changed.infohash);
      const isLoading = changed.state === "downloading";
      state.textContent = [
        STATES[changed.state],
        t("{percent} % of {size}", {
          percent: size > 0 ? Math.floor((100 * held) / size) : 100,
          size: bytesText(size),
        }),
        isLoading && transfer ? t("{count} peers", { count: transfer.peers }) : "",
        isLoading && transfer ? `↓ ${bytesText(transfer.speed_down)}/s` : "",
      ]
        .filter(Boolean)
        .join(" · ");
      problem.textContent = changed.problem ?? "";
      bar.max = Math.max(1, size);
      bar.value = held;
      bar.hidden = changed.state === "complete";
      pause.hidden = changed.state !== "downloading" && changed.state !== "waiting";
      resume.hidden = changed.state !== "paused" && changed.state !== "failed";
    },
  };
}
