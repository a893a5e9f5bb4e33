// @ts-check

import { openDialog } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { t } from "../parts/text.js";

/**
 * @typedef {{ id: number, title: string, provider?: string, status?: "alive" | "weak" | "dead" }} Source
 * @typedef {{ source: number, sources: number, shows_pattern: boolean, switches: number, last_switch_reason: string | null }} Channel
 */

/** What visits of the engine found. */
const STATUS_TEXTS = { alive: t("plays"), weak: t("sometimes fails"), dead: t("does not play") };
/** How long a switch is shown over the video. */
const NOTE_MS = 6_000;

/**
 * Opens the order of the sources of an item's channel: each is moved with two buttons, so that a keyboard or a remote control is enough.
 * Sources that the user never moved follow in the order that the engine chooses.
 *
 * @param {{ id: number, title: string }} item
 * @param {{ api: import("../parts/api.js").EngineApi, notify: (text: string) => void }} options
 */
export async function openChannelSources({ id, title }, { api, notify }) {
  const list = make("ol", { class: "guide-sources channel-sources" });
  const hint = make("p", { class: "hint" });
  const message = make("p", { class: "hint", role: "status" });
  /** @type {Source[]} */
  let sources = [];
  const save = action(t("Save this order"), () => store(sources.map((source) => source.id)), "primary");
  const automatic = action(t("Choose automatically"), () => store([]));
  const buttons = make(
    "div",
    { class: "dialog-buttons" },
    automatic,
    action(t("Cancel"), () => dialog.close()),
    save,
  );
  const dialog = openDialog(t("Sources of {title}", { title }), hint, list, message, buttons);

  /** @param {readonly number[]} order */
  async function store(order) {
    try {
      await api.call("set_channel_sources", { id, ids: order.join(",") });
      dialog.close();
      notify(order.length > 0 ? t("The order of the sources is saved") : t("The engine chooses the sources"));
    } catch (error) {
      dialog.problem(error);
    }
  }

  /**
   * @param {number} from
   * @param {-1 | 1} step
   */
  function move(from, step) {
    const [moved] = sources.splice(from, 1);
    const to = from + step;
    if (moved === undefined) return;
    sources.splice(to, 0, moved);
    show();
    message.textContent = t("{name} is now source {number} of {all}", {
      name: sourceName(moved),
      number: to + 1,
      all: sources.length,
    });
    // The same button of the same source keeps the focus; at the end of the list, the other one gets it.
    const places = list.children[to]?.querySelectorAll("button");
    const wanted = places?.[step === -1 ? 0 : 1];
    (wanted?.disabled ? places?.[step === -1 ? 1 : 0] : wanted)?.focus();
  }

  function show() {
    list.replaceChildren(
      ...sources.map((source, place) => {
        /** @type {(label: string, sign: string, step: -1 | 1, isLast: boolean) => HTMLButtonElement} */
        const button = (label, sign, step, isLast) =>
          make(
            "button",
            {
              type: "button",
              "aria-label": `${label}: ${sourceName(source)}`,
              disabled: isLast,
              onclick: () => move(place, step),
            },
            sign,
          );
        return make(
          "li",
          {},
          make(
            "span",
            { class: "source-name" },
            make("bdi", {}, source.title.slice(0, 200)),
            make("small", {}, details(source)),
          ),
          button(t("Move up"), "↑", -1, place === 0),
          button(t("Move down"), "↓", 1, place === sources.length - 1),
        );
      }),
    );
    const isOne = sources.length < 2;
    hint.textContent = isOne
      ? t("This channel has one source. Other items with the same name become further sources.")
      : t("The first source is played. If it fails, the next one continues without a pause.");
    save.disabled = isOne;
    automatic.disabled = isOne;
  }

  try {
    sources = await api.call("get_channel_sources", { id });
    show();
  } catch (error) {
    dialog.problem(error);
  }
}

/** @param {Source} source */
function sourceName({ id, title }) {
  return `${title.slice(0, 60)} (${id})`;
}

/** @param {Source} source */
function details({ id, provider, status }) {
  const parts = [
    t("Item {id}", { id: String(id) }),
    provider,
    status === undefined ? undefined : STATUS_TEXTS[status],
  ];
  return parts.filter((part) => part !== undefined && part !== "").join(", ");
}

/** Shows each change of the source over the video for some seconds. */
export class SourceNotes {
  #shown;
  /** @type {string | undefined} */
  #last;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {HTMLElement} shown */
  constructor(shown) {
    this.#shown = shown;
    this.clear();
  }

  /** @param {Channel | undefined} channel the `channel` of the session's state */
  update(channel) {
    if (channel === undefined || (channel.source === 0 && !channel.shows_pattern)) return;
    const state = `${channel.switches} ${channel.source}`;
    const isChange = this.#last !== undefined && this.#last !== state;
    this.#last = state;
    if (isChange) this.#show(noteText(channel), !channel.shows_pattern);
  }

  clear() {
    clearTimeout(this.#timer);
    this.#shown.hidden = true;
  }

  /**
   * @param {string} text
   * @param {boolean} isBrief
   */
  #show(text, isBrief) {
    this.clear();
    this.#shown.textContent = text;
    this.#shown.hidden = false;
    if (isBrief) this.#timer = setTimeout(() => this.clear(), NOTE_MS);
  }
}

/** @param {Channel} channel */
function noteText({ source, sources, shows_pattern, last_switch_reason }) {
  if (shows_pattern) return t("No source of this channel plays. The engine keeps trying.");
  const why = last_switch_reason === null ? "" : ` (${last_switch_reason})`;
  return `${t("Source {number} of {all}", { number: source, all: sources })}${why}`;
}
