// @ts-check
import { icon, make } from "../parts/dom.js";
import { clockText } from "../parts/figures.js";
import { t } from "../parts/text.js";
import { logo, programmeLines } from "./playlist-row.js";

/** Cards of one shelf. */
const MAX_CARDS = 18;
/** Channels that are asked for their present programme. */
const MAX_ASKED = 40;

/**
 * @typedef {import("./playlist-source.js").ListItem} ListItem
 * @typedef {import("./resume.js").WatchedFilm} WatchedFilm
 * @typedef {{
 *   page: (filter: Partial<import("./playlist-source.js").Filter>, offset: number, limit: number) =>
 *     Promise<import("./playlist-source.js").ListPage>,
 *   films: () => Promise<WatchedFilm[]>, forget: (film: WatchedFilm) => Promise<void>,
 *   playItem: (item: ListItem) => void, playFilm: (film: WatchedFilm) => void,
 * }} HomeOptions
 */

/** The shelves at the top of the place Watch: what the user continues, favourites, what is on, and what is new. */
export class Home {
  #root;
  #options;

  /**
   * @param {HTMLElement} root
   * @param {HomeOptions} options
   */
  constructor(root, options) {
    this.#root = root;
    this.#options = options;
  }

  /** Loads the shelves again. Those without a card are left out; what cannot be loaded too, because the list below reports it. */
  async reload() {
    const { page, films, playItem } = this.#options;
    const none = { total: 0, items: [] };
    const items = (/** @type {Parameters<HomeOptions["page"]>} */ ...parameters) =>
      page(...parameters).catch(() => none);
    const [watched, favourites, first] = await Promise.all([
      films(),
      items({ isFavorite: true }, 0, MAX_CARDS),
      items({}, 0, MAX_ASKED),
    ]);
    const newest = first.total > MAX_CARDS ? await items({}, first.total - MAX_CARDS, MAX_CARDS) : first;
    const now = Date.now() / 1000;
    const onAir = [...favourites.items, ...first.items].filter(
      ({ programmes: [programme], id }, at, all) =>
        programme !== undefined && programme.start <= now && all.findIndex((each) => each.id === id) === at,
    );
    const card = (/** @type {ListItem} */ item) => itemCard(item, playItem);
    const shelves = [
      shelf(
        t("Continue watching"),
        watched.slice(0, MAX_CARDS).map((film) => this.#filmCard(film)),
      ),
      shelf(t("Favourites"), favourites.items.map(card)),
      shelf(t("On now"), onAir.slice(0, MAX_CARDS).map(card)),
      shelf(t("Recently added"), [...newest.items].reverse().slice(0, MAX_CARDS).map(card)),
    ].filter((each) => each !== undefined);
    this.#root.replaceChildren(...shelves);
    this.#root.hidden = shelves.length === 0;
  }

  /** @param {WatchedFilm} film */
  #filmCard(film) {
    const { forget, playFilm } = this.#options;
    const rest = clockText(film.duration - film.position);
    const remove = async () => {
      await forget(film);
      await this.reload();
    };
    return make(
      "li",
      { class: "home-card home-film" },
      make(
        "button",
        { type: "button", class: "home-play", onclick: () => playFilm(film) },
        make("bdi", { class: "home-title" }, film.title.slice(0, 200)),
        make("span", { class: "soft" }, t("{time} left", { time: rest })),
        make("progress", { max: film.duration, value: film.position, "aria-label": t("Watched part") }),
      ),
      make(
        "button",
        {
          type: "button",
          class: "home-remove",
          "aria-label": t("Remove {title}", { title: film.title }),
          onclick: remove,
        },
        icon("close"),
      ),
    );
  }
}

/**
 * @param {string} title
 * @param {readonly HTMLElement[]} cards
 */
function shelf(title, cards) {
  if (cards.length === 0) return undefined;
  return make("section", { class: "shelf" }, make("h2", {}, title), make("ul", {}, ...cards));
}

/**
 * @param {ListItem} item
 * @param {(item: ListItem) => void} play
 */
function itemCard(item, play) {
  return make(
    "li",
    { class: item.isPoster ? "home-card is-poster" : "home-card" },
    make(
      "button",
      { type: "button", class: "home-play", onclick: () => play(item) },
      logo(item),
      make("bdi", { class: "home-title" }, item.title.slice(0, 200)),
      ...programmeLines({ ...item, programmes: item.programmes.slice(0, 1) }),
    ),
  );
}
