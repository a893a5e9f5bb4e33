// @ts-check

import { problemText } from "../parts/api.js";
import { action, make } from "../parts/dom.js";
import { agoText, clockText } from "../parts/figures.js";
import { factsText } from "../parts/rows.js";
import { t } from "../parts/text.js";
import { showToast } from "../parts/toast.js";

/** @typedef {import("../parts/live-data.js").SessionFigures} SessionFigures */

const STATES = { starting: t("Starting"), playing: t("Playing"), failed: t("Failed") };

/**
 * Creates the row of a player: what it plays, where, and how well.
 *
 * @param {(infohash: string) => string} nameOf
 * @returns {import("../parts/keyed-list.js").Row<SessionFigures>}
 */
export function sessionRow(nameOf) {
  const title = make("bdi", { class: "row-title" });
  const player = make("span", {});
  const state = make("span", { class: "state" });
  const detail = make("small", {});
  const problem = make("small", { class: "row-problem" });
  /** @type {SessionFigures | undefined} */
  let session;
  const stop = action(
    t("Stop"),
    async () => {
      if (session === undefined) return;
      try {
        const response = await fetch(`ace/cmd/${session.infohash}/${session.key}?method=stop`);
        if (!response.ok) throw new Error((await response.text()).trim());
      } catch (error) {
        showToast(problemText(error));
      }
    },
    "danger",
  );
  const element = make(
    "li",
    { class: "row-item" },
    make("div", { class: "row-text" }, title, player, detail, problem),
    state,
    stop,
  );
  return {
    element,
    update(next) {
      session = next;
      const { status, player: program, address, output, behind_live: behind, held } = next;
      title.textContent = nameOf(next.infohash);
      const name = programName(program) || t("Unknown player");
      player.textContent = address === null ? name : t("{name} at {address}", { name, address });
      player.title = program;
      state.textContent = next.buffering !== null && status === "playing" ? t("Waiting") : STATES[status];
      state.className = `state is-${status === "failed" ? "fail" : next.buffering === null ? "ok" : "warn"}`;
      detail.textContent = factsText([
        output === "hls" ? "HLS" : "MPEG-TS",
        next.is_converted ? t("sound converted if needed") : "",
        behind === null
          ? t("{percent} % held", { percent: held })
          : behind < 5
            ? t("live")
            : t("{time} behind live", { time: clockText(behind) }),
        t("since {ago}", { ago: agoText(next.started_at) }),
        next.is_played ? "" : t("paused"),
      ]);
      problem.textContent = next.problem ?? next.buffering ?? "";
      stop.setAttribute(
        "aria-label",
        t("Stop {title} in {player}", { title: nameOf(next.infohash), player: name }),
      );
    },
  };
}

/** Programs by a part of their user agents. Browsers name each other, so the order matters. */
const PROGRAMS = /** @type {const} */ ([
  [/VLC\/?([\d.]*)/i, "VLC"],
  [/mpv ?([\d.]*)/i, "mpv"],
  [/Kodi\/?([\d.]*)/i, "Kodi"],
  [/TiviMate\/?([\d.]*)/i, "TiviMate"],
  [/Lavf\/?([\d.]*)/i, "FFmpeg"],
  [/Jellyfin[^/]*\/?([\d.]*)/i, "Jellyfin"],
  [/Edg\/(\d+)/, "Edge"],
  [/Firefox\/(\d+)/, "Firefox"],
  [/Chrom(?:e|ium)\/(\d+)/, "Chrome"],
  [/Version\/(\d+).*Safari/, "Safari"],
]);

/**
 * Returns a short name of a program: `Chrome 120`.
 *
 * @param {string} userAgent
 */
function programName(userAgent) {
  for (const [pattern, name] of PROGRAMS) {
    const match = pattern.exec(userAgent);
    if (match) return `${name} ${match[1]}`.trim();
  }
  return userAgent.slice(0, 60);
}
