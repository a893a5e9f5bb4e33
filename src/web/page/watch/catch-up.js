// @ts-check

import { openDialog, openLink } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { bytesText, clockText } from "../parts/figures.js";
import { appUrl } from "../parts/place.js";
import { t } from "../parts/text.js";
import { attachPlayer } from "./player.js";
import { spanText } from "./programme-row.js";

/**
 * @typedef {import("./programme-row.js").Programme & { kept_seconds: number }} PastProgramme
 * @typedef {{ item_id: number, title: string, bytes: number, problem: string | null,
 *   kept: { start: number, stop: number }[] }} KeptChannel
 * @typedef {{ window: number, channels: KeptChannel[] }} CatchUp
 */

/** Programmes of which less is missing are shown as complete. */
const MISSING_SECONDS = 60;

/**
 * Opens a dialog with the past programmes of a channel, in which catch-up of the channel can be turned on and off.
 *
 * @param {import("./playlist-source.js").ListItem} item
 * @param {{ api: import("../parts/api.js").EngineApi, notify: (text: string) => void }} options
 */
export async function openCatchUpDialog({ id, title }, { api, notify }) {
  const state = make("p", { class: "hint", role: "status" });
  const programmes = make("ul", { class: "guide-sources programmes" });
  const buttons = make("div", { class: "dialog-buttons" });
  const dialog = openDialog(t("Past programmes of {title}", { title }), state, programmes, buttons);
  const close = action(t("Close"), () => dialog.close());

  /** @param {boolean} value */
  async function set(value) {
    try {
      await api.call("catch_up_set", { id, value });
      notify(
        value ? t("{title} is kept from now on", { title }) : t("{title} is not kept any more", { title }),
      );
      await show();
    } catch (error) {
      dialog.problem(error);
    }
  }

  async function show() {
    const {
      window: seconds,
      channels,
      is_kept,
    } = /** @type {CatchUp & { is_kept: boolean }} */ (await api.call("catch_up_list", { id }));
    const channel = channels[0];
    if (!is_kept || channel === undefined) {
      const isOff = seconds === 0;
      state.textContent = isOff
        ? t(
            "Catch-up is off. Set “catch-up” in the settings to a time such as 24h, and choose the channels to keep here.",
          )
        : t(
            "The last {time} hours of this channel can be kept, so that past programmes can be played. The engine then receives the channel all the time.",
            { time: clockText(seconds) },
          );
      programmes.replaceChildren();
      const keep = action(t("Keep for catch-up"), () => set(true), "primary");
      buttons.replaceChildren(close, ...(isOff ? [] : [keep]));
      return;
    }
    buttons.replaceChildren(
      action(t("Stop keeping and delete"), () => set(false), "danger"),
      close,
    );
    const total = channel.kept.reduce((sum, { start, stop }) => sum + stop - start, 0);
    const problem =
      channel.problem === null
        ? ""
        : ` ${t("At present nothing is kept: {problem}.", { problem: channel.problem })}`;
    state.textContent = `${t("{time} are kept, {size}.", { time: clockText(total), size: bytesText(channel.bytes) })}${problem}`;
    const now = Math.floor(Date.now() / 1000);
    const found = /** @type {PastProgramme[]} */ (
      await api.call("get_epg_by_item_id", { id, min_stop: now - seconds, max_start: now })
    );
    const listed = found.filter(({ kept_seconds }) => kept_seconds > 0).reverse();
    // Without a guide the kept times themselves are listed.
    const rows = listed.length > 0 ? listed : channel.kept.map((span) => keptRow(title, span)).reverse();
    programmes.replaceChildren(...rows.map((programme) => pastRow(programme, id, now)));
  }

  try {
    await show();
  } catch (error) {
    buttons.replaceChildren(close);
    dialog.problem(error);
  }
}

/**
 * @param {string} title
 * @param {{ start: number, stop: number }} span
 * @returns {PastProgramme}
 */
function keptRow(title, { start, stop }) {
  return { start, stop, title, subtitle: "", kept_seconds: stop - start };
}

/**
 * @param {PastProgramme} programme
 * @param {number} id
 * @param {number} now
 */
function pastRow({ start, stop, title, subtitle, kept_seconds: kept }, id, now) {
  const name = subtitle === "" ? title : `${title}: ${subtitle}`;
  const missing = Math.min(stop, now) - start - kept;
  /** @param {"ts" | "m3u8"} form */
  const path = (form) => `catch-up/${id}.${form}?start=${start}&duration=${stop - start}`;
  const gap = missing > MISSING_SECONDS ? `, ${t("{time} missing", { time: clockText(missing) })}` : "";
  return make(
    "li",
    {},
    make(
      "div",
      { class: "guide-source" },
      make("bdi", {}, name),
      make("small", {}, spanText(start, stop) + gap),
    ),
    make(
      "div",
      { class: "recording-buttons" },
      action(t("Play"), () => openVideoDialog(name, path("m3u8"), false)),
      action(t("Link"), () => openLink(appUrl(path("ts")))),
    ),
  );
}

/**
 * Plays a URL of the engine in a dialog.
 *
 * @param {string} title
 * @param {string} url
 * @param {boolean} isFile
 */
export async function openVideoDialog(title, url, isFile) {
  const video = make("video", { controls: true, playsinline: true, class: "dialog-video" });
  const close = action(t("Close"), () => dialog.close());
  const dialog = openDialog(title, video, make("div", { class: "dialog-buttons" }, close));
  const player = await attachPlayer(video, url, isFile, 0.01, {
    onFailure: (_, message) => dialog.problem(new Error(message)),
    onTracks: () => {},
    subtitleLanguage: undefined,
    audioLanguage: undefined,
  });
  video.closest("dialog")?.addEventListener("close", () => player.destroy());
  // Browsers that forbid playback with sound without a click show their play button.
  video.play().catch(() => {});
}
