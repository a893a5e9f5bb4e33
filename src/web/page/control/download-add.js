// @ts-check

import { problemText } from "../parts/api.js";
import { openForm } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { listenForDrops } from "../parts/drops.js";
import { bytesText } from "../parts/figures.js";
import { readLink } from "../parts/link.js";
import { t } from "../parts/text.js";
import { showToast } from "../parts/toast.js";

/**
 * @typedef {import("../parts/api.js").EngineApi} EngineApi
 * @typedef {{ index: number, filename: string, size?: number }} MediaFile
 * @typedef {{ name: string, infohash: string, files: MediaFile[] }} MediaFiles the result of `get_media_files`
 * @typedef {{ infohash: string, files: [number, number][] | null }} Download one of the results of `download_list`
 */

/** As for playback. */
const MAX_TORRENT_BYTES = 10_000_000;
/** Longer lists are chosen as a whole, because a dialog with more rows would be slow. */
const MAX_LISTED = 2_000;

/**
 * The form that adds content: a link, a torrent file, or a file that is dropped on the page.
 *
 * @param {EngineApi} api
 */
export function addForm(api) {
  const link = make("input", {
    type: "text",
    autocomplete: "off",
    placeholder: t("Magnet link, infohash, or the address of a torrent file"),
    "aria-label": t("Magnet link, infohash, or the address of a torrent file"),
  });
  const file = make("input", { type: "file", accept: ".torrent,application/x-bittorrent", hidden: true });
  const add = make("button", { type: "submit", class: "primary" }, t("Add"));
  const choose = action(t("Torrent file…"), () => file.click());
  const note = make(
    "p",
    { class: "soft", role: "status" },
    t("You can also drop torrent files on this page."),
  );
  const problem = make("p", { class: "problem", role: "alert", hidden: true });
  const form = make("form", { class: "row download-form" }, link, add, choose, file);

  /** @param {() => Promise<unknown>} work */
  async function run(work) {
    problem.hidden = true;
    add.disabled = true;
    note.textContent = t("Looking for its files. This can take a minute if only peers know them.");
    try {
      await work();
      link.value = "";
    } catch (error) {
      problem.textContent = problemText(error);
      problem.hidden = false;
    } finally {
      add.disabled = false;
      note.textContent = t("You can also drop torrent files on this page.");
    }
  }

  /** @param {File} torrent */
  const takeFile = (torrent) =>
    run(async () => {
      if (torrent.size > MAX_TORRENT_BYTES)
        throw new Error(
          t("{name} is too large for a torrent file (the limit is 10 MB).", { name: torrent.name }),
        );
      await chooseFiles(api, { transport_file_data: torrent });
    });

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run(async () => {
      const content = readLink(link.value);
      if (content === undefined)
        throw new Error(t("This is neither a magnet link, an infohash nor a web address."));
      await chooseFiles(api, { [content.parameter]: content.value });
    });
  });
  file.addEventListener("change", () => {
    const [torrent] = file.files ?? [];
    if (torrent) takeFile(torrent);
    file.value = "";
  });
  const overlay = make(
    "div",
    { class: "drop", hidden: true, "aria-hidden": "true" },
    make("p", {}, t("Drop a torrent file to download it")),
  );
  const heading = make("h2", {}, t("Add a download"));
  const card = make("section", { class: "card" }, heading, form, note, problem, overlay);
  listenForDrops(overlay, card, takeFile);
  return card;
}

/**
 * Reads the files of content and lets the user choose those to download. Rejects if they cannot be read.
 *
 * @param {EngineApi} api
 * @param {import("../parts/api.js").Parameters} content parameters that name content
 */
export async function chooseFiles(api, content) {
  const media = /** @type {MediaFiles} */ (await api.call("get_media_files", content));
  const { infohash, files } = media;
  const known = /** @type {Download[]} */ (await api.call("download_list")).find(
    (each) => each.infohash === infohash,
  );
  const wasChosen = (/** @type {number} */ index) =>
    !known?.files || known.files.some(([first, last]) => first <= index && index <= last);
  const listed = files.length <= MAX_LISTED ? files : [];
  const boxes = listed.map(({ index }) => {
    const box = make("input", { type: "checkbox", value: index });
    box.checked = wasChosen(index);
    return box;
  });
  const total = make("p", { role: "status" });
  const chosen = () => listed.filter((_, at) => boxes[at]?.checked);
  const showTotal = () => {
    const picked = listed.length > 0 ? chosen() : files;
    const size = picked.reduce((sum, file) => sum + (file.size || 0), 0);
    total.textContent = t("{chosen} of {all} files, {size}", {
      chosen: picked.length,
      all: files.length,
      size: bytesText(size),
    });
  };
  const all = action(t("All or none"), () => {
    const isAll = boxes.every((box) => box.checked);
    for (const box of boxes) box.checked = !isAll;
    showTotal();
  });
  all.hidden = listed.length < 2;
  const list = make(
    "ul",
    { class: "file-list" },
    ...listed.map(({ filename, size }, at) =>
      make(
        "li",
        {},
        make(
          "label",
          { class: "check" },
          boxes[at],
          make("bdi", {}, filename),
          make("small", {}, bytesText(size || 0)),
        ),
      ),
    ),
  );
  list.addEventListener("change", showTotal);
  showTotal();
  openForm(media.name, [list, total, all], known ? t("Save") : t("Download"), async () => {
    const indexes = chosen().map(({ index }) => index);
    if (listed.length > 0 && indexes.length === 0) throw new Error(t("Choose at least one file."));
    const isWhole = indexes.length === files.length || listed.length === 0;
    await api.call("download_add", {
      ...content,
      file_indexes: isWhole ? undefined : indexes.join(","),
    });
    showToast(t("The engine downloads {name}", { name: media.name }));
  });
}
