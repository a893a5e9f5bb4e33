// @ts-check
import { EngineApi, problemText } from "../parts/api.js";
import { action, make } from "../parts/dom.js";
import { KeyedList } from "../parts/keyed-list.js";
import { t } from "../parts/text.js";
import { tokenForm } from "../parts/token-form.js";
import { BroadcastCard } from "./broadcast-card.js";
import { openRelayForm, relayCard } from "./relays.js";
import { openStartForm } from "./start-form.js";

/** @typedef {import("./contract.js").Broadcast} Broadcast */

/**
 * Opens the place Studio: the broadcasts of this engine.
 *
 * @param {HTMLElement} root
 * @param {import("../parts/live-data.js").LiveData} live
 * @returns {import("../parts/place.js").Place}
 */
export function openPlace(root, live) {
  const api = new EngineApi();
  /** @type {Set<BroadcastCard>} */
  const cards = new Set();
  const problem = make("p", { class: "problem", role: "alert", hidden: true });
  const start = action(t("Start a broadcast"), () => openStartForm(api), "primary");
  const relay = action(t("Relay a stream…"), () => openRelayForm(api));
  const only = make(
    "p",
    { class: "soft", hidden: true },
    t("Broadcasts are started and stopped on the engine's own computer."),
  );
  const list = make("div", { class: "broadcasts" });
  const relayed = make("div", { class: "broadcasts" });
  const access = make("div", { hidden: true });
  const empty = make(
    "div",
    { class: "card nothing", hidden: true },
    make("p", { class: "big" }, t("Nothing is on air")),
    make(
      "p",
      {},
      t(
        "Broadcast a file, a web stream, a camera or OBS. Viewers pass the stream on to each other, so a small uplink reaches many of them.",
      ),
    ),
  );
  root.append(
    make(
      "div",
      { class: "row spread" },
      make("h1", {}, t("Studio")),
      make("div", { class: "buttons" }, relay, start),
    ),
    ...[only, problem, access, list, relayed, empty],
  );
  const broadcasts = new KeyedList(
    list,
    (/** @type {Broadcast} */ { name }) => name,
    () => {
      const card = new BroadcastCard(api, live);
      cards.add(card);
      return card;
    },
  );

  const relays = new KeyedList(
    relayed,
    (/** @type {import("./relays.js").Relay} */ { infohash }) => infohash,
    () => relayCard(api),
  );

  function update() {
    problem.hidden = live.problem === "";
    problem.textContent = live.problem;
    const all = /** @type {Broadcast[] | undefined} */ (live.get("broadcasts"));
    if (all === undefined) return;
    broadcasts.update(all);
    const passedOn = live.get("relays") ?? [];
    relays.update(passedOn);
    empty.hidden = all.length + passedOn.length > 0;
  }

  const stopPreviews = () => {
    for (const card of cards) card.preview.stop();
  };
  window.addEventListener("pagehide", stopPreviews);
  let release = () => {};
  async function show() {
    release();
    try {
      const isOwner = (await api.enter()) === "full";
      // Only the engine's own computer may start and stop broadcasts.
      start.hidden = relay.hidden = !api.isLocal;
      only.hidden = !isOwner || api.isLocal;
      access.hidden = isOwner;
      access.replaceChildren(...(isOwner ? [] : [tokenForm(api, show)]));
      if (isOwner) release = live.listen(api, update);
    } catch (error) {
      problem.textContent = problemText(error);
      problem.hidden = false;
    }
  }
  return {
    show: () => void show(),
    hide() {
      release();
      stopPreviews();
    },
  };
}
