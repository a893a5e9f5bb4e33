// @ts-check
import { EngineApi, needsToken, sentence } from "../parts/api.js";
import { confirmFirst, openDialog, openLink } from "../parts/dialog.js";
import { action, field, make } from "../parts/dom.js";
import { bytesText } from "../parts/figures.js";
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

/** Interval at which the dialog shows the growth of a running recording. */
const POLL_MS = 2_000;
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
 */
export function connectRecordings(button) {
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
    async function show() {
      try {
        const recordings = /** @type {Recording[]} */ (await api.call("recording_list"));
        hint.textContent =
          recordings.length === 0
            ? t("Nothing is recorded. Choose “Record…” in the menu of a channel of your playlist.")
            : t("A recording is an MPEG-TS file: play it in VLC, Kodi or mpv by its link.");
        list.replaceChildren(...recordings.reverse().map((recording) => recordingRow(recording, change)));
        const rules = /** @type {Series[]} */ (await api.call("recording_series_list"));
        const rows = rules.map((rule) => seriesRow(rule, change));
        series.replaceChildren(
          ...(rows.length === 0
            ? []
            : [make("h3", {}, t("Series")), make("ul", { class: "guide-sources" }, ...rows)]),
        );
        const isRunning = recordings.some(
          ({ state, matroska, torrent }) =>
            state === "recording" || matroska?.state === "converting" || torrent?.state === "preparing",
        );
        if (isRunning) setTimeout(() => list.isConnected && show(), POLL_MS);
      } catch (error) {
        dialog.problem(error);
      }
    }
    /** @type {(method: string, id: number, value?: boolean) => Promise<void>} */
    async function change(method, id, value) {
      await api.call(method, { id, ...(value !== undefined && { value }) });
      await show();
    }
    if ((await api.enter()) === "full") await show();
    else dialog.problem(new Error(needsToken()));
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

/**
 * @param {Recording} recording
 * @param {(method: string, id: number, value?: boolean) => Promise<void>} change
 */
function recordingRow(
  { id, title, channel, start, stop, state, problem, bytes, url, subtitle, episode, matroska, torrent },
  change,
) {
  const part = [episode, subtitle].filter((text) => text !== "").join(" ");
  const name = part === "" ? title : `${title}: ${part}`;
  const size = bytes > 0 ? `, ${bytesText(bytes)}` : "";
  const buttons = make("div", { class: "recording-buttons" });
  if (url !== null)
    buttons.append(
      action(t("Play"), () => openVideoDialog(name, url.replace(/\.ts$/, ".m3u8"), false)),
      action(t("Link"), () => openLink(url)),
      make("a", { href: `${url}?download=1`, download: true }, t("Download")),
    );
  if (matroska?.url) buttons.append(make("a", { href: `${matroska.url}?download=1`, download: true }, "MKV"));
  else if (matroska?.state === "converting")
    buttons.append(make("small", {}, `MKV ${Math.floor(100 * matroska.share)} %`));
  else if (state === "done" && url !== null)
    buttons.append(action(t("Make MKV"), () => change("recording_convert", id)));
  if (torrent?.magnet) {
    const { magnet } = torrent;
    buttons.append(
      action(t("Torrent link"), () => openLink(magnet)),
      action(t("Stop sharing"), () => change("recording_share", id, false)),
    );
  } else if (torrent?.state === "preparing")
    buttons.append(make("small", {}, t("Torrent {percent} %", { percent: Math.floor(100 * torrent.share) })));
  else if (state === "done" && url !== null)
    buttons.append(action(t("Share as a torrent"), () => change("recording_share", id, true)));
  if (state === "recording") buttons.append(action(t("Stop"), () => change("recording_stop", id)));
  buttons.append(
    action(state === "planned" ? t("Cancel") : t("Delete"), () =>
      confirmFirst(
        state === "planned" ? t("Cancel this recording?") : t("Delete this recording?"),
        title,
        state === "planned" ? t("Cancel recording") : t("Delete"),
        () => change("recording_delete", id),
      ),
    ),
  );
  return make(
    "li",
    {},
    make(
      "div",
      { class: "guide-source" },
      make("bdi", {}, title === channel ? title : `${name} (${channel})`),
      make("small", {}, `${spanText(start, stop)}, ${STATES[state]}${size}`),
      ...[problem, matroska?.problem ?? null, torrent?.problem ?? null].map((text) =>
        text === null ? undefined : make("small", { class: "problem" }, sentence(text)),
      ),
    ),
    buttons,
  );
}

/**
 * Opens a dialog in which the user records a channel: now, or one of its next programmes.
 *
 * @param {import("./playlist-source.js").ListItem} item
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
