// @ts-check
import { make, sign } from "./playlist-dom.js";

/**
 * What one can do with an item of the list; `edit` is absent where one may only look.
 *
 * @typedef {import("./playlist-source.js").ListItem} ListItem
 * @typedef {{
 *   play: (item: ListItem) => void,
 *   showTag: (tag: string) => void,
 *   toggleFavorite?: ((item: ListItem) => void) | undefined,
 *   openMenu: (item: ListItem) => void,
 * }} RowActions
 */

/** Longer titles are cut where they are shown; the whole one is in the menu. */
const MAX_SHOWN_TITLE = 300;
const MAX_SHOWN_GROUPS = 3;

/**
 * One line of the list: picture, title, star, menu.
 *
 * @param {ListItem} item
 * @param {RowActions} actions
 */
export function itemRow(item, actions) {
  const title = item.title.slice(0, MAX_SHOWN_TITLE);
  const play = make(
    "button",
    { type: "button", class: "item-play", "data-column": 0, onclick: () => actions.play(item) },
    picture(item),
    make(
      "span",
      { class: "item-text" },
      make("bdi", { class: "item-title" }, title),
      make("span", { class: "item-notes" }, ...notes(item)),
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
        title: "Show all of this group",
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
        "aria-label": `Favourite: ${title}`,
        onclick: () => toggleFavorite(item),
      },
      sign("star"),
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
        "aria-label": `More about ${title}`,
        onclick: () => actions.openMenu(item),
      },
      sign("more"),
    ),
  );
  return row;
}

/** @param {ListItem} item */
function notes(item) {
  return [
    item.isLive ? make("span", { class: "badge live" }, "Live") : undefined,
    item.isEnabled ? undefined : make("span", { class: "badge" }, "Off"),
    item.isLocked
      ? make(
          "span",
          { class: "badge", title: "Locked" },
          sign("lock"),
          make("span", { class: "unseen" }, "Locked"),
        )
      : undefined,
    item.category === "" ? undefined : make("bdi", {}, item.category),
  ];
}

/**
 * The logo; a letter until it is there, and where there is none.
 *
 * @param {ListItem} item
 */
function picture({ title, iconPath, id }) {
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
