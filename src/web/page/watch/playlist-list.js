// @ts-check
import { problemText } from "../parts/api.js";
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
 * }} ListOptions
 */

/** Items per request: two screens of a phone, one of a TV. */
const PAGE_ITEMS = 50;
/** Browsers become slow with more rows; the user can search instead. */
const MAX_ROWS = 5000;
/** The next page is loaded when the end of the list is closer than this to the visible part. */
const LOAD_MARGIN = "800px";

/** The list of items: loads the first page, and further pages while the user scrolls. */
export class PlaylistList {
  #options;
  #loading = new AbortController();
  /** @type {Map<number, ListItem>} */
  #items = new Map();
  #total = 0;
  #offset = 0;
  #isLoading = false;
  #isComplete = false;
  /** Whether the shown problem comes from loading the list. Other problems, such as a failed upload, stay visible. */
  #hasFailed = false;
  #observer;

  /** @param {ListOptions} options */
  constructor(options) {
    this.#options = options;
    this.#observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) this.#loadMore();
      },
      { rootMargin: LOAD_MARGIN },
    );
    this.#observer.observe(options.end);
  }

  /** Loads the list again from its start. The present rows stay until the first page arrives. */
  async reload() {
    this.#loading.abort();
    this.#loading = new AbortController();
    this.#offset = 0;
    this.#isComplete = false;
    this.#isLoading = false;
    await this.#loadMore();
  }

  /**
   * Replaces the row of an item, without a request to the engine.
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
    const fresh = itemRow(item, this.#options.actions());
    row.replaceWith(fresh);
    if (column !== undefined) focusRow(fresh, column);
    this.#reloadIfLoading();
  }

  /**
   * Removes an item from the list.
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
    // The following items have moved up by one.
    this.#offset = Math.max(0, this.#offset - 1);
    this.#showStatus();
    if (next instanceof HTMLElement) focusRow(next, 0);
    this.#reloadIfLoading();
  }

  /** A page that is being loaded may not contain the latest change. */
  #reloadIfLoading() {
    if (this.#isLoading) this.reload();
  }

  async #loadMore() {
    if (this.#isLoading || this.#isComplete) return;
    this.#isLoading = true;
    const { source, filter, actions, list, problem, onPage } = this.#options;
    const { signal } = this.#loading;
    const offset = this.#offset;
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
      // An item that moved between two requests may appear in both pages.
      const fresh = page.items.filter(({ id }) => !this.#items.has(id));
      for (const item of fresh) this.#items.set(item.id, item);
      list.append(...fresh.map((item) => itemRow(item, actions())));
      this.#total = page.total;
      this.#offset = offset + page.items.length;
      this.#isComplete = page.items.length === 0 || this.#offset >= page.total || this.#offset >= MAX_ROWS;
      this.#showStatus();
      onPage(page, offset === 0);
    } catch (error) {
      if (signal.aborted) return;
      problem.textContent = problemText(error);
      problem.hidden = false;
      this.#hasFailed = true;
      this.#isComplete = true;
    } finally {
      if (!signal.aborted) {
        this.#isLoading = false;
        list.removeAttribute("aria-busy");
        // The observer reports only changes. After a short page the end is still visible, so it is observed again.
        if (!this.#isComplete) {
          this.#observer.unobserve(this.#options.end);
          this.#observer.observe(this.#options.end);
        }
      }
    }
  }

  #showStatus() {
    const { status, end } = this.#options;
    const isCut = this.#offset >= MAX_ROWS && this.#offset < this.#total;
    status.textContent = `${this.#total.toLocaleString()} ${this.#total === 1 ? "item" : "items"}`;
    end.textContent = isCut
      ? `Only the first ${MAX_ROWS.toLocaleString()} items are listed. Use the search to find others.`
      : "";
  }

  /** @param {number} id */
  #rowOf(id) {
    return this.#options.list.querySelector(`li[data-id="${id}"]`);
  }
}

/**
 * Makes arrow keys, Home and End move the focus through the rows and buttons of a list.
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
    const targets = {
      ArrowDown: () => row.nextElementSibling,
      ArrowUp: () => row.previousElementSibling,
      Home: () => list.firstElementChild,
      End: () => list.lastElementChild,
    };
    const target = targets[event.key];
    if (target !== undefined) {
      const to = target();
      // Beyond the first and last row, the page's own key handler moves the focus.
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
