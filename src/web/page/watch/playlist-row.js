// @ts-check

import { icon, make } from "../parts/dom.js";
import { timeText } from "../parts/figures.js";
import { locale, t } from "../parts/text.js";

/**
 * The actions of a row; `toggleFavorite` is absent on a read-only page.
 *
 * @typedef {import("./playlist-source.js").ListItem} ListItem
 * @typedef {{
 *   play: (item: ListItem) => void,
 *   showTag: (tag: string) => void,
 *   toggleFavorite?: ((item: ListItem) => void) | undefined,
 *   openMenu: (item: ListItem) => void,
 * }} RowActions
 */

/** Longer titles are cut in the list. */
const MAX_SHOWN_TITLE = 300;
const MAX_SHOWN_GROUPS = 3;

/**
 * Creates the row of an item: logo, title, star, menu.
 *
 * @param {ListItem} item
 * @param {RowActions} actions
 * @param {number} number its place in the list; these digits of a remote control play it unless its list or another one gives a number
 */
export function itemRow(item, actions, number) {
  const title = item.title.slice(0, MAX_SHOWN_TITLE);
  const play = make(
    "button",
    { type: "button", class: "item-play", "data-column": 0, onclick: () => actions.play(item) },
    make("span", { class: "item-number" }, item.number ?? String(number)),
    logo(item),
    make(
      "span",
      { class: "item-text" },
      make(
        "span",
        { class: "item-head" },
        make("bdi", { class: "item-title" }, title),
        make("span", { class: "item-notes" }, ...notes(item)),
      ),
      ...programmeLines(item),
    ),
  );
  const row = make("li", { class: item.isEnabled ? "item" : "item off", "data-id": item.id }, play);
  const tags = item.groups.slice(0, MAX_SHOWN_GROUPS).map((tag) =>
    make(
      "button",
      {
        type: "button",
        class: "tag",
        tabindex: -1,
        title: t("Show all items of this group"),
        onclick: () => actions.showTag(tag),
      },
      make("bdi", {}, tag),
    ),
  );
  if (tags.length > 0) row.append(make("span", { class: "item-tags" }, ...tags));
  if (actions.toggleFavorite !== undefined) {
    const { toggleFavorite } = actions;
    const star = make(
      "button",
      {
        type: "button",
        class: "item-star",
        "data-column": 1,
        "aria-pressed": String(item.isFavorite),
        "aria-label": t("Favourite: {title}", { title }),
        onclick: () => toggleFavorite(item),
      },
      icon("star"),
    );
    row.append(star);
  }
  row.append(
    make(
      "button",
      {
        type: "button",
        class: "item-more",
        "data-column": 2,
        "aria-haspopup": "dialog",
        "aria-label": t("Menu of {title}", { title }),
        onclick: () => actions.openMenu(item),
      },
      icon("more"),
    ),
  );
  return row;
}

/**
 * The programme that is on with its progress, and the next one.
 *
 * @param {ListItem} item
 */
export function programmeLines({ programmes }) {
  const now = Date.now() / 1000;
  return programmes.map(({ start, stop, title }) =>
    make(
      "span",
      { class: start <= now ? "item-programme is-on" : "item-programme" },
      make("time", { datetime: new Date(start * 1000).toISOString() }, timeText(start)),
      make("bdi", {}, title.slice(0, MAX_SHOWN_TITLE)),
      start <= now
        ? make("progress", {
            max: stop - start,
            value: now - start,
            "aria-label": t("Progress of the programme"),
          })
        : undefined,
    ),
  );
}

/** @param {ListItem} item */
function notes(item) {
  return [
    item.health && healthDot(item.health),
    item.isLive ? make("span", { class: "badge live" }, t("Live")) : undefined,
    item.isEnabled ? undefined : make("span", { class: "badge" }, t("Hidden")),
    item.isLocked
      ? make(
          "span",
          { class: "badge", title: t("Locked") },
          icon("lock"),
          make("span", { class: "visually-hidden" }, t("Locked")),
        )
      : undefined,
    item.category === "" ? undefined : make("bdi", {}, item.category),
  ];
}

const STATUS_TEXTS = { alive: t("Plays"), weak: t("May not play"), dead: t("Does not play") };

/**
 * A dot in the color of the channel's status, with what the last visit found.
 *
 * @param {NonNullable<ListItem["health"]>} health
 */
function healthDot({
  status,
  checked_at,
  problem,
  start_ms,
  bitrate,
  width,
  height,
  codecs = [],
  is_moving,
}) {
  const facts = [
    STATUS_TEXTS[status],
    problem,
    start_ms === undefined
      ? undefined
      : t("starts in {seconds} s", { seconds: (start_ms / 1000).toFixed(1) }),
    height ? `${width}×${height}` : undefined,
    bitrate ? `${((8 * bitrate) / 1e6).toFixed(1)} Mbit/s` : undefined,
    codecs.join(", "),
    is_moving === false ? t("still picture") : undefined,
    t("checked {time}", { time: new Date(checked_at * 1000).toLocaleString(locale()) }),
  ];
  const text = facts.filter(Boolean).join(" · ");
  return make(
    "span",
    { class: `status-dot ${status}`, title: text },
    make("span", { class: "visually-hidden" }, STATUS_TEXTS[status]),
  );
}

/**
 * Creates the logo; shows a letter until the image is loaded, or if there is none.
 *
 * @param {ListItem} item
 */
export function logo({ title, iconPath, id }) {
  const letter = /[\p{L}\p{N}]/u.exec(title)?.[0] ?? "•";
  const frame = make(
    "span",
    { class: `item-picture hue-${id % 6}`, "aria-hidden": "true" },
    letter.toUpperCase(),
  );
  if (iconPath === "") return frame;
  const image = make("img", {
    src: iconPath,
    alt: "",
    loading: "lazy",
    decoding: "async",
    width: 48,
    height: 48,
  });
  image.addEventListener("load", () => frame.classList.add("shown"));
  image.addEventListener("error", () => image.remove());
  frame.append(image);
  return frame;
}
