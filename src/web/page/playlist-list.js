// @ts-check
import { problemText } from "./api.js";
import { itemRow } from "./playlist-row.js";

/**
 * @typedef {import("./playlist-source.js").ListItem} ListItem
 * @typedef {import("./playlist-source.js").Filter} Filter
 * @typedef {{
 *   list: HTMLElement, status: HTMLElement, end: HTMLElement, problem: HTMLElement,
 *   source: () => import("./playlist-source.js").ListSource,
 *   filter: () => Filter,
 *   actions: () => import("./playlist-row.js").RowActions,
 *   onPage: (page: import("./playlist-source.js").ListPage, isFirst: boolean) => void,
 * }} ListParts
 */

/** Items of one page: two screens of a phone, one of a television. */
const PAGE_ITEMS = 50;
/** Who has scrolled past so many searches instead; a browser holds no more rows with ease. */
const MAX_ROWS = 5000;
/** Rows are loaded when their place is nearer than this. */
const AHEAD = "800px";

/** The list as it is seen: the first page, and more of them as one scrolls. */
export class PlaylistList {
  #parts;
  #look = new AbortController();
  /** @type {Map<number, ListItem>} */
  #items = new Map();
  #total = 0;
  #asked = 0;
  #isLoading = false;
  #isWhole = false;
  /** Whether the problem that is shown is the list's own: others, such as a refused upload, stay. */
  #hasFailed = false;
  #watcher;

  /** @param {ListParts} parts */
  constructor(parts) {
    this.#parts = parts;
    this.#watcher = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) this.#loadMore();
      },
      { rootMargin: AHEAD },
    );
    this.#watcher.observe(parts.end);
  }

  /** Loads the list anew from its start; what is shown stays until then. */
  async reload() {
    this.#look.abort();
    this.#look = new AbortController();
    this.#asked = 0;
    this.#isWhole = false;
    this.#isLoading = false;
    await this.#loadMore();
  }

  /**
   * Shows an item as it is now, without a look at the engine.
   *
   * @param {ListItem} item
   */
  replace(item) {
    if (!this.#items.has(item.id)) return;
    this.#items.set(item.id, item);
    const row = this.#rowOf(item.id);
    if (row === null) return;
    const column =
      document.activeElement?.closest("li") === row ? columnOf(document.activeElement) : undefined;
    const fresh = itemRow(item, this.#parts.actions());
    row.replaceWith(fresh);
    if (column !== undefined) focusRow(fresh, column);
    this.#askAgain();
  }

  /**
   * Takes an item out of the list.
   *
   * @param {number} id
   */
  remove(id) {
    const row = this.#rowOf(id);
    if (row === null) return;
    const next = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    this.#items.delete(id);
    this.#total--;
    // The items behind it have moved up by one.
    this.#asked = Math.max(0, this.#asked - 1);
    this.#showStatus();
    if (next instanceof HTMLElement) focusRow(next, 0);
    this.#askAgain();
  }

  /** A page that is on its way may be older than what has just changed. */
  #askAgain() {
    if (this.#isLoading) this.reload();
  }

  async #loadMore() {
    if (this.#isLoading || this.#isWhole) return;
    this.#isLoading = true;
    const { source, filter, actions, list, problem, onPage } = this.#parts;
    const { signal } = this.#look;
    const offset = this.#asked;
    list.setAttribute("aria-busy", "true");
    try {
      const page = await source().page(filter(), offset, PAGE_ITEMS, signal);
      if (signal.aborted) return;
      if (this.#hasFailed) problem.hidden = true;
      this.#hasFailed = false;
      if (offset === 0) {
        this.#items.clear();
        list.replaceChildren();
      }
      // What moved meanwhile may come twice.
      const fresh = page.items.filter(({ id }) => !this.#items.has(id));
      for (const item of fresh) this.#items.set(item.id, item);
      list.append(...fresh.map((item) => itemRow(item, actions())));
      this.#total = page.total;
      this.#asked = offset + page.items.length;
      this.#isWhole = page.items.length === 0 || this.#asked >= page.total || this.#asked >= MAX_ROWS;
      this.#showStatus();
      onPage(page, offset === 0);
    } catch (error) {
      if (signal.aborted) return;
      problem.textContent = problemText(error);
      problem.hidden = false;
      this.#hasFailed = true;
      this.#isWhole = true;
    } finally {
      if (!signal.aborted) {
        this.#isLoading = false;
        list.removeAttribute("aria-busy");
        // An observer speaks of changes only: a short page leaves the end in sight.
        if (!this.#isWhole) {
          this.#watcher.unobserve(this.#parts.end);
          this.#watcher.observe(this.#parts.end);
        }
      }
    }
  }

  #showStatus() {
    const { status, end } = this.#parts;
    const isCut = this.#asked >= MAX_ROWS && this.#asked < this.#total;
    status.textContent = `${this.#total.toLocaleString()} ${this.#total === 1 ? "item" : "items"}`;
    end.textContent = isCut ? `These are the first ${MAX_ROWS.toLocaleString()}. Search for the others.` : "";
  }

  /** @param {number} id */
  #rowOf(id) {
    return this.#parts.list.querySelector(`li[data-id="${id}"]`);
  }
}

/**
 * Arrow keys, Home and End move through a list of rows, as they do with a remote control.
 *
 * @param {HTMLElement} list
 */
export function listenForArrows(list) {
  list.addEventListener("keydown", (event) => {
    const row = document.activeElement?.closest("li");
    if (!row || !list.contains(row)) return;
    const column = columnOf(document.activeElement);
    const buttons = /** @type {NodeListOf<HTMLElement>} */ (row.querySelectorAll("[data-column]"));
    const at = [...buttons].indexOf(/** @type {HTMLElement} */ (document.activeElement));
    /** @type {Record<string, () => Element | null | undefined>} */
    const ways = {
      ArrowDown: () => row.nextElementSibling,
      ArrowUp: () => row.previousElementSibling,
      Home: () => list.firstElementChild,
      End: () => list.lastElementChild,
    };
    const way = ways[event.key];
    if (way !== undefined) {
      const to = way();
      // Past the first and the last row the page's other controls are next.
      if (!(to instanceof HTMLElement)) return;
      focusRow(to, column);
    } else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      buttons[at + (event.key === "ArrowRight" ? 1 : -1)]?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

/** @param {Element | null} element */
function columnOf(element) {
  return Number(element?.getAttribute("data-column") ?? 0);
}

/**
 * @param {HTMLElement} row
 * @param {number} column
 */
function focusRow(row, column) {
  const buttons = /** @type {NodeListOf<HTMLElement>} */ (row.querySelectorAll("[data-column]"));
  const fitting = [...buttons].find((button) => columnOf(button) === column) ?? buttons[0];
  fitting?.focus();
}
