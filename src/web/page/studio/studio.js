// @ts-check
import { EngineApi, problemText } from "../parts/api.js";
import { action, make } from "../parts/dom.js";
import { tokenForm } from "../parts/token-form.js";
import { BroadcastCard } from "./broadcast-card.js";
import { openStartForm } from "./start-form.js";

/** @typedef {import("./contract.js").Broadcast} Broadcast */

/** Interval of the figures while the place is shown. */
const REFRESH_MS = 1_000;

/**
 * Opens the place Studio: the broadcasts of this engine.
 *
 * @param {HTMLElement} root
 * @returns {import("../parts/place.js").Place}
 */
export function openPlace(root) {
  const api = new EngineApi();
  /** @type {Map<string, BroadcastCard>} */
  const cards = new Map();
  /** @type {number | undefined} */
  let timer;
  const problem = make("p", { class: "problem", role: "alert", hidden: true });
  const start = action("Start a broadcast", () => openStartForm(api, refresh), "primary");
  const head = make("div", { class: "row spread" }, make("h1", {}, "Studio"), start);
  const list = make("div", { class: "broadcasts" });
  const empty = make(
    "div",
    { class: "card nothing", hidden: true },
    make("p", { class: "big" }, "Nothing is on air"),
    make(
      "p",
      {},
      "Broadcast a file, a web stream, a camera or OBS. Viewers pass the stream on to each other, so a small uplink reaches many of them.",
    ),
  );
  root.append(head, problem, list, empty);

  async function refresh() {
    const { broadcasts } = /** @type {{ broadcasts: Broadcast[] }} */ (await api.call("broadcast_list"));
    const names = new Set(broadcasts.map(({ name }) => name));
    for (const [name, card] of cards) {
      if (names.has(name)) continue;
      card.element.remove();
      cards.delete(name);
    }
    for (const broadcast of broadcasts) {
      const known = cards.get(broadcast.name);
      const card = known || new BroadcastCard(api, refresh);
      card.update(broadcast);
      if (known !== undefined) continue;
      cards.set(broadcast.name, card);
      list.append(card.element);
    }
    empty.hidden = broadcasts.length > 0;
  }

  async function run() {
    problem.hidden = true;
    try {
      await refresh();
    } catch (error) {
      problem.textContent = problemText(error);
      problem.hidden = false;
    }
    if (timer !== undefined) timer = window.setTimeout(run, REFRESH_MS);
  }

  async function show() {
    try {
      const rights = await api.enter();
      // Only the engine's own computer may start and stop broadcasts.
      start.hidden = !api.isLocal;
      if (rights === "full") {
        list.replaceChildren(...[...cards.values()].map(({ element }) => element));
        timer = 0;
        await run();
      } else list.replaceChildren(tokenForm(api, show));
    } catch (error) {
      problem.textContent = problemText(error);
      problem.hidden = false;
    }
  }
  return {
    show: () => void show(),
    hide() {
      window.clearTimeout(timer);
      timer = undefined;
    },
  };
}
