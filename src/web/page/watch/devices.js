// @ts-check
import { EngineApi, sentence } from "../parts/api.js";
import { openDialog } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { clockText } from "../parts/figures.js";
import { t } from "../parts/text.js";

const SKIP_SECONDS = 30;

/**
 * @typedef {{ id: string, type: "proxy" | "aircast", name: string }} Player
 * @typedef {{ link: import("../parts/link.js").Link, fileIndex: number | undefined, title: string }} Content
 * @typedef {{ status: "playing" | "paused" | "buffering" | "idle", volume: number | null, position: number | null, duration: number | null, title: string | null }} Status
 * @typedef {{ live: import("../parts/live-data.js").LiveData, playing: () => Content | undefined, started: (player: Player) => void }} DeviceOptions
 */

const STATES = {
  playing: t("Playing"),
  paused: t("Paused"),
  buffering: t("Loading"),
  idle: t("Nothing plays"),
};

/**
 * Connects the button “Play on…”: its dialog lists the players of the engine and controls the device that plays.
 *
 * @param {HTMLButtonElement} button
 * @param {DeviceOptions} options
 */
export function connectDevices(button, { live, playing, started }) {
  const api = new EngineApi();
  /** @type {Player | undefined} the device that this page used last */
  let current;
  button.addEventListener("click", () => {
    const content = make("div", { class: "device" });
    const close = action(t("Close"), () => dialog.close());
    const buttons = make("div", { class: "dialog-buttons" }, close);
    const dialog = openDialog(t("Play on…"), content, buttons);
    /** @type {() => void} stops what the dialog shows at present */
    let leave = () => {};
    const show = (/** @type {(() => void)} */ next) => {
      leave();
      leave = next;
    };
    const showList = () => show(openList(live, content, choose, dialog.problem));
    const showRemote = (/** @type {Player} */ device) =>
      show(openRemote(api, live, content, device, showList, dialog.problem));
    /** @param {Player} player */
    async function choose(player) {
      const playable = playing();
      if (playable === undefined)
        throw new Error(t("The engine does not know this content yet. Try again when it plays here."));
      const { link, fileIndex, title } = playable;
      const chosen =
        link.parameter === "item" ? { playlist_item_id: link.value } : { [link.parameter]: link.value };
      await api.call("open_in_player", { player_id: player.id, ...chosen, file_index: fileIndex, title });
      started(player);
      if (player.type === "proxy") {
        dialog.close();
        return;
      }
      current = player;
      showRemote(player);
    }
    dialog.onClose(() => leave());
    if (current === undefined) showList();
    else showRemote(current);
  });
}

/**
 * Lists the players, as long as they are found and vanish. Returns a function that stops it.
 *
 * @param {import("../parts/live-data.js").LiveData} live
 * @param {HTMLElement} place
 * @param {(player: Player) => Promise<void>} choose
 * @param {(error: unknown) => void} problem
 */
function openList(live, place, choose, problem) {
  const note = make(
    "p",
    { class: "device-note", role: "status" },
    t("Looking for Chromecasts, DLNA televisions and Kodi in the network of the engine's computer…"),
  );
  const list = make("div", { class: "sheet" });
  place.replaceChildren(list, note);
  /** @type {Map<string, HTMLButtonElement>} */
  const buttons = new Map();
  const changed = (/** @type {readonly Player[]} */ players) => {
    for (const [id, gone] of buttons)
      if (gone.getAttribute("aria-busy") !== "true" && !players.some((player) => player.id === id)) {
        gone.remove();
        buttons.delete(id);
      }
    for (const player of players) {
      if (buttons.has(player.id)) continue;
      const label =
        player.type === "proxy"
          ? t("{player} on the engine's computer", { player: player.name })
          : player.name;
      const start = async () => {
        note.textContent = t("Starting on {player}. This can take a minute.", { player: player.name });
        try {
          await choose(player);
        } catch (error) {
          note.textContent = "";
          problem(error);
        }
      };
      const button = action(label, start);
      buttons.set(player.id, button);
      list.append(button);
    }
    if (![...buttons.values()].some((button) => button.getAttribute("aria-busy") === "true"))
      note.textContent =
        players.length > 0
          ? ""
          : t(
              "Nothing is found yet; the search continues. Turn on a Chromecast, a DLNA television or Kodi in the same network as the engine's computer. Kodi also has to allow remote control: Settings › Services › Control.",
            );
  };
  return live.followPlayers(changed, (text) => {
    note.textContent = text;
  });
}

/**
 * Shows the remote control of a device. Returns a function that stops following its status.
 *
 * @param {EngineApi} api
 * @param {import("../parts/live-data.js").LiveData} live
 * @param {HTMLElement} place
 * @param {Player} device
 * @param {() => void} back shows the list
 * @param {(error: unknown) => void} problem
 */
function openRemote(api, live, place, { id, name }, back, problem) {
  /** @type {Status | undefined} */
  let status;
  const state = make("p", { role: "status" });
  const time = make("output", { class: "device-time" });
  const position = make("input", { type: "range", min: 0, step: 1, "aria-label": t("Position") });
  const volume = make("input", { type: "range", min: 0, max: 100, step: 1, "aria-label": t("Volume") });
  const command = async (
    /** @type {string} */ method,
    /** @type {number | undefined} */ value = undefined,
  ) => {
    try {
      await api.call(`aircast_${method}`, { device_id: id, value });
      show(await api.call("aircast_get_status", { device_id: id }));
    } catch (error) {
      problem(error);
    }
  };
  const seek = (/** @type {number} */ seconds) =>
    command("seek", Math.max(0, Math.min(seconds, (status?.duration ?? seconds) - 1)));
  const toggle = action(t("Pause"), () => command(status?.status === "paused" ? "play" : "pause"), "primary");
  const skip = (/** @type {number} */ seconds, /** @type {string} */ label) =>
    action(label, () => seek((status?.position ?? 0) + seconds));
  const seeking = make("div", { class: "device-seek" }, position, time);
  const skips = [
    skip(-SKIP_SECONDS, t("Back {seconds} s", { seconds: SKIP_SECONDS })),
    skip(SKIP_SECONDS, t("Forward {seconds} s", { seconds: SKIP_SECONDS })),
  ];
  const loudness = make("label", { class: "device-volume" }, make("span", {}, t("Volume")), volume);
  position.addEventListener("change", () => seek(Number(position.value)));
  volume.addEventListener("change", () => command("set_volume", Number(volume.value) / 100));
  const show = (/** @type {Status} */ now) => {
    status = now;
    state.textContent = `${name}: ${now.title === null ? STATES[now.status] : `${STATES[now.status]} – ${now.title}`}`;
    toggle.textContent = now.status === "paused" ? t("Continue") : t("Pause");
    toggle.disabled = now.status === "idle";
    const isFilm = now.status !== "idle" && now.duration !== null && now.position !== null;
    seeking.hidden = !isFilm;
    for (const button of skips) button.hidden = !isFilm;
    if (isFilm && document.activeElement !== position) {
      position.max = String(Math.floor(now.duration ?? 0));
      position.value = String(now.position);
    }
    time.textContent = isFilm ? `${clockText(now.position ?? 0)} / ${clockText(now.duration ?? 0)}` : "";
    loudness.hidden = now.volume === null;
    if (document.activeElement !== volume) volume.value = String(Math.round(100 * (now.volume ?? 0)));
  };
  place.replaceChildren(
    state,
    seeking,
    make("div", { class: "dialog-buttons" }, ...skips, toggle),
    loudness,
    make(
      "div",
      { class: "dialog-buttons" },
      action(t("Other devices"), back),
      action(t("Stop"), () => command("stop"), "danger"),
    ),
  );
  const failed = (/** @type {string} */ text) => {
    state.textContent = sentence(text);
  };
  const changed = (/** @type {Status | { problem: string }} */ now) =>
    "problem" in now ? failed(now.problem) : show(now);
  return live.followDevice(id, changed, failed);
}
