// @ts-check
import { EngineApi, needsToken, sentence } from "../parts/api.js";
import { confirmFirst, openDialog, openLink } from "../parts/dialog.js";
import { action, field, make } from "../parts/dom.js";
import { bytesText } from "../parts/figures.js";
import { KeyedList } from "../parts/keyed-list.js";
import { t } from "../parts/text.js";
import { openVideoDialog } from "./catch-up.js";
import { programmeRow, spanText } from "./programme-row.js";

/**
 * @typedef {{
 *   id: number, item_id: number, title: string, channel: string, start: number, stop: number,
 *   state: "planned" | "recording" | "done" | "failed", problem: string | null, bytes: number, url: string | null,
 *   subtitle: string, episode: string,
 *   torrent: { state: "preparing" | "shared" | "failed", share: number, problem: string | null, magnet: string | null } | null,
 *   matroska: { state: "converting" | "ready" | "failed", share: number, problem: string | null, url: string | null } | null,
 * }} Recording
 * @typedef {{ id: number, title: string, item_id: number | null }} Series
 * @typedef {import("./programme-row.js").Programme} Programme
 */

const STATES = {
  planned: t("planned"),
  recording: t("recording"),
  done: t("recorded"),
  failed: t("not recorded"),
};
const MAX_MINUTES = 1_440;
const MAX_PADDING_MINUTES = 180;

/**
 * Makes a button open the dialog of the recordings.
 *
 * @param {HTMLButtonElement} button
 * @param {import("../parts/live-data.js").LiveData} live
 */
export function connectRecordings(button, live) {
  button.addEventListener("click", async () => {
    const api = new EngineApi();
    const list = make("ul", { class: "guide-sources" });
    const series = make("section");
    const hint = make("p", { class: "hint" });
    const close = action(t("Close"), () => dialog.close());
    const dialog = openDialog(
      t("Recordings"),
      list,
      series,
      hint,
      make("div", { class: "dialog-buttons" }, close),
    );
    const rows = new KeyedList(
      list,
      (/** @type {Recording} */ { id }) => String(id),
      () => new RecordingRow(change),
    );
    function showRecordings() {
      const recordings = /** @type {Recording[] | undefined} */ (live.get("recordings"));
      if (recordings === undefined) return;
      hint.textContent =
        recordings.length === 0
          ? t("Nothing is recorded. Choose “Record…” in the menu of a channel of your playlist.")
          : t("A recording is an MPEG-TS file: play it in VLC, Kodi or mpv by its link.");
      rows.update([...recordings].reverse());
    }
    async function showSeries() {
      const rules = /** @type {Series[]} */ (await api.call("recording_series_list"));
      series.replaceChildren(
        ...(rules.length === 0
          ? []
          : [
              make("h3", {}, t("Series")),
              make("ul", { class: "guide-sources" }, ...rules.map((rule) => seriesRow(rule, change))),
            ]),
      );
    }
    /** @type {(method: string, id: number, value?: boolean) => Promise<void>} */
    async function change(method, id, value) {
      await api.call(method, { id, ...(value !== undefined && { value }) });
      if (method === "recording_series_delete") await showSeries();
    }
    try {
      if ((await api.enter()) !== "full") throw new Error(needsToken());
      dialog.onClose(live.listen(api, showRecordings));
      await showSeries();
    } catch (error) {
      dialog.problem(error);
    }
  });
}

/**
 * @param {Series} series
 * @param {(method: string, id: number) => Promise<void>} change
 */
function seriesRow({ id, title, item_id }, change) {
  const where = item_id === null ? t("every channel") : t("one channel");
  const remove = () => change("recording_series_delete", id);
  return make(
    "li",
    {},
    make(
      "div",
      { class: "guide-source" },
      make("bdi", {}, title),
      make("small", {}, t("each episode once, {where}", { where })),
    ),
    action(t("Delete"), () =>
      confirmFirst(t("Stop recording this series?"), title, t("Stop recording"), remove),
    ),
  );
}

/** One recording: its facts, and its buttons, which are made anew only if others are needed. */
class RecordingRow {
  #change;
  #name = make("bdi");
  #facts = make("small");
  #text = make("div", { class: "guide-source" });
  #buttons = make("div", { class: "recording-buttons" });
  #drawn = "";
  element = make("li", {}, this.#text, this.#buttons);

  /** @param {(method: string, id: number, value?: boolean) => Promise<void>} change */
  constructor(change) {
    this.#change = change;
  }

  /** @param {Recording} recording */
  update(recording) {
    const { title, channel, start, stop, state, problem, bytes, matroska, torrent } = recording;
    const size = bytes > 0 ? `, ${bytesText(bytes)}` : "";
    this.#name.textContent = title === channel ? title : `${nameOf(recording)} (${channel})`;
    this.#facts.textContent = `${spanText(start, stop)}, ${STATES[state]}${size}`;
    const drawn = JSON.stringify({ ...recording, bytes: 0 });
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    const problems = [problem, matroska?.problem, torrent?.problem].flatMap((text) => text ?? []);
    this.#text.replaceChildren(
      this.#name,
      this.#facts,
      ...problems.map((text) => make("small", { class: "problem" }, sentence(text))),
    );
    this.#buttons.replaceChildren(...recordingButtons(recording, this.#change));
  }
}

/** @param {Recording} recording */
function nameOf({ title, subtitle, episode }) {
  const part = [episode, subtitle].filter((text) => text !== "").join(" ");
  return part === "" ? title : `${title}: ${part}`;
}

/**
 * @param {Recording} recording
 * @param {(method: string, id: number, value?: boolean) => Promise<void>} change
 */
function recordingButtons(recording, change) {
  const { id, title, state, url, matroska, torrent } = recording;
  const buttons = [];
  if (url !== null)
    buttons.push(
      action(t("Play"), () => openVideoDialog(nameOf(recording), url.replace(/\.ts$/, ".m3u8"), false)),
      action(t("Link"), () => openLink(url)),
      make("a", { href: `${url}?download=1`, download: true }, t("Download")),
    );
  if (matroska?.url) buttons.push(make("a", { href: `${matroska.url}?download=1`, download: true }, "MKV"));
  else if (matroska?.state === "converting")
    buttons.push(make("small", {}, `MKV ${Math.floor(100 * matroska.share)} %`));
  else if (state === "done" && url !== null)
    buttons.push(action(t("Make MKV"), () => change("recording_convert", id)));
  if (torrent?.magnet) {
    const { magnet } = torrent;
    buttons.push(
      action(t("Torrent link"), () => openLink(magnet)),
      action(t("Stop sharing"), () => change("recording_share", id, false)),
    );
  } else if (torrent?.state === "preparing")
    buttons.push(make("small", {}, t("Torrent {percent} %", { percent: Math.floor(100 * torrent.share) })));
  else if (state === "done" && url !== null)
    buttons.push(action(t("Share as a torrent"), () => change("recording_share", id, true)));
  if (state === "recording") buttons.push(action(t("Stop"), () => change("recording_stop", id)));
  buttons.push(
    action(state === "planned" ? t("Cancel") : t("Delete"), () =>
      confirmFirst(
        state === "planned" ? t("Cancel this recording?") : t("Delete this recording?"),
        title,
        state === "planned" ? t("Cancel recording") : t("Delete"),
        () => change("recording_delete", id),
      ),
    ),
  );
  return buttons;
}

/**
 * Opens a dialog in which the user records a channel: now, or one of its next programmes.
 *
 * @param {{ id: number, title: string }} item
 * @param {{ api: EngineApi, notify: (text: string) => void }} options
 */
export async function openRecordDialog({ id, title }, { api, notify }) {
  const minutes = make("input", { type: "number", min: 1, max: MAX_MINUTES, value: 60, required: true });
  const padding = make("input", {
    type: "number",
    min: 0,
    max: MAX_PADDING_MINUTES,
    value: 5,
    required: true,
  });
  const programmes = make("ul", { class: "guide-sources programmes" });
  const padded = () => ({ before: 60 * Number(padding.value), after: 60 * Number(padding.value) });
  /** @type {(name: string) => Promise<void>} */
  async function recordSeries(name) {
    try {
      await api.call("recording_series_add", { id, title: name, ...padded() });
      dialog.close();
      notify(t("Every episode of {name} is recorded; see “Recordings”", { name }));
    } catch (error) {
      dialog.problem(error);
    }
  }
  /** @type {(parameters: Record<string, number | string>) => Promise<void>} */
  async function record(parameters) {
    try {
      await api.call("recording_add", { id, ...parameters });
      dialog.close();
      notify(t("Recording planned; see “Recordings”"));
    } catch (error) {
      dialog.problem(error);
    }
  }
  const now = action(
    t("Record now"),
    async () => {
      if (!minutes.reportValidity()) return;
      const start = Math.floor(Date.now() / 1000);
      await record({ start, stop: start + 60 * Number(minutes.value) });
    },
    "primary",
  );
  const dialog = openDialog(
    t("Record {title}", { title }),
    make(
      "div",
      { class: "fields" },
      field(t("Minutes"), minutes),
      field(t("Padding"), padding, t("Minutes before and after a programme")),
    ),
    programmes,
    make(
      "div",
      { class: "dialog-buttons" },
      action(t("Cancel"), () => dialog.close()),
      now,
    ),
  );
  try {
    const found = /** @type {Programme[]} */ (await api.call("get_epg_by_item_id", { id }));
    programmes.replaceChildren(
      ...found.map((programme) => {
        const { start, stop, title: name } = programme;
        return programmeRow(
          programme,
          id,
          "",
          action(
            t("Record"),
            () => padding.reportValidity() && record({ start, stop, title: name, ...padded() }),
          ),
          action(t("Series"), () => padding.reportValidity() && recordSeries(name)),
        );
      }),
    );
  } catch (error) {
    dialog.problem(error);
  }
}
