// @ts-check
import { sentence } from "../parts/api.js";
import { confirmFirst, openForm } from "../parts/dialog.js";
import { action, field, make } from "../parts/dom.js";
import { bytesText, contentName } from "../parts/figures.js";
import { factsText } from "../parts/rows.js";
import { t } from "../parts/text.js";
import { showToast } from "../parts/toast.js";

/**
 * An element of `relay_list`.
 *
 * @typedef {{
 *   infohash: string, link: string, name: string | null, status: keyof typeof STATES, remark: string, has_pass: boolean, peers: number,
 *   children: number, behind_ms: number | null, speed_down: number, speed_up: number,
 * }} Relay
 */

/** The name and the level of each status. */
const STATES = {
  joining: [t("Joining the stream"), "note"],
  relaying: [t("Relaying"), "ok"],
  failed: [t("Cannot relay"), "fail"],
};

/**
 * Opens the form that relays a stream.
 *
 * @param {import("../parts/api.js").EngineApi} api
 */
export function openRelayForm(api) {
  const link = make("input", {
    type: "text",
    required: true,
    spellcheck: "false",
    placeholder: "sluice:?magnet=…",
  });
  const pass = make("input", { type: "file", accept: ".json,.pass,application/json" });
  openForm(
    t("Relay a stream"),
    [
      make(
        "p",
        { class: "hint" },
        t(
          "A relay passes a live stream on to its viewers, so that the broadcaster needs less upload. It continues when the engine starts again.",
        ),
      ),
      field(t("Link of the stream"), link),
      field(
        t("Relay pass"),
        pass,
        t(
          "A file from the broadcaster. With it, viewers prefer this relay. Without it, the broadcaster has to name the relay's address.",
        ),
      ),
    ],
    t("Start"),
    async () => {
      const [file] = pass.files ?? [];
      await api.call("relay_start", { link: link.value.trim(), pass: await file?.text() });
    },
  );
}

/**
 * Creates the card of a relay.
 *
 * @param {import("../parts/api.js").EngineApi} api
 * @returns {import("../parts/keyed-list.js").Row<Relay>}
 */
export function relayCard(api) {
  const title = make("bdi");
  const state = make("span", { class: "state" });
  const facts = make("p", { class: "hint" });
  const remark = make("p", { class: "problem", role: "status" });
  /** @type {Relay | undefined} */
  let relay;
  const stop = action(
    t("Stop"),
    () => {
      if (relay === undefined) return;
      const { infohash, name } = relay;
      confirmFirst(
        t("Stop {title}?", { title: contentName(name ?? infohash) }),
        t("Its viewers receive the stream from the broadcaster and from each other."),
        t("Stop the relay"),
        async () => {
          await api.call("relay_stop", { infohash });
          showToast(t("The relay has stopped"));
        },
      );
    },
    "danger",
  );
  return {
    element: make(
      "article",
      { class: "card broadcast" },
      make("div", { class: "row spread" }, make("h2", {}, title), state),
      ...[facts, remark, make("div", { class: "buttons" }, stop)],
    ),
    update(next) {
      relay = next;
      const [text = "", level = ""] = STATES[next.status];
      title.textContent = t("Relay of {title}", { title: contentName(next.name ?? next.infohash) });
      state.textContent = text;
      state.className = `state is-${level}`;
      facts.textContent = factsText([
        t("{count} peers", { count: next.peers }),
        `${t("Supplied directly")}: ${next.children}`,
        next.behind_ms === null
          ? ""
          : t("{seconds} s behind the source", { seconds: (next.behind_ms / 1000).toFixed(1) }),
        `↓ ${bytesText(next.speed_down)}/s  ↑ ${bytesText(next.speed_up)}/s`,
        next.has_pass ? t("with a relay pass") : "",
      ]);
      remark.textContent = sentence(next.remark);
      remark.hidden = next.remark === "";
      stop.hidden = !api.isLocal;
    },
  };
}
