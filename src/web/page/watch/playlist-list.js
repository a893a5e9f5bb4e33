// @ts-check
import { problemText } from "../parts/api.js";
import { make } from "../parts/dom.js";
import { t } from "../parts/text.js";
import { columnOf, focusRow } from "./list-keys.js";
import { itemRow } from "./playlist-row.js";

/**
 * @typedef {import("./playlist-source.js").ListItem} ListItem
 * @typedef {import("./playlist-source.js").Filter} Filter
 * @typedef {{
 *   list: HTMLElement, status: HTMLElement, end: HTMLElement, problem: HTMLElement,
 *   source: () => import("./playlist-source.js").ListSource,
 *   filter: () => Filter,
 *   actions: () => import("./playlist-row.js").RowActions,
 *   onPage: (page: import("./playlist-source.js").ListPage) => void,
 * }} ListOptions
 */

/** Items per request: two screens of a phone, one of a TV. */
const PAGE_ITEMS = 50;
/** Pages that are kept: some screens in both directions; others are requested again. */
const MAX_PAGES = 40;
/** Browsers limit the height of an element to 17 million pixels (Firefox). */
const MAX_ROWS = 150_000;
/** Rows that exist above and below the visible part, so that arrow keys and slow scrolling find them. */
const EXTRA_ROWS = 8;
/** Heights of rows without and with programmes. */
const ROW_REM = 4.25;
const PROGRAMME_ROW_REM = 5.75;
/** While the user scrolls fast, pages in between are not requested. */
const LOAD_THROTTLE_MS = 80;

/** The list of items: only the visible rows exist, and only the pages that are near them are loaded. */
export class PlaylistList {
  #options;
  #loading = new AbortController();
  /** @type {Map<number, readonly ListItem[]>} by page number, the least recently used first */
  #pages = new Map();
  /** @type {Set<number>} */
  #requested = new Set();
  /** @type {Map<number, HTMLElement>} by index */
  #rows = new Map();
  #total = 0;
  #rowPixels = 0;
  #rowRem = ROW_REM;
  #loadTimer = 0;
  /** The pages with rows that are visible or near and not loaded. @type {readonly number[]} */
  #missing = [];
  #frame = 0;
  /** Whether the shown problem comes from loading the list. Other problems, such as a failed upload, stay visible. */
  #hasFailed = false;

  /** @param {ListOptions} options */
  constructor(options) {
    this.#options = options;
    const schedule = () => {
      cancelAnimationFrame(this.#frame);
      this.#frame = requestAnimationFrame(() => this.#render());
    };
    window.addEventListener("scroll", schedule, { passive: true });
    window.addEventListener("resize", () => {
      this.#measure();
      schedule();
    });
    // The list may become visible, such as when its tab is opened.
    new ResizeObserver(schedule).observe(options.list);
    options.list.addEventListener("keydown", (event) => {
      if (event.key !== "Home" && event.key !== "End") return;
      event.preventDefault();
      event.stopImmediatePropagation();
      this.#focusIndex(event.key === "Home" ? 0 : this.#shownTotal - 1, columnOf(document.activeElement));
    });
  }

  /** Loads the list again. The present rows stay until the first page arrives. */
  async reload() {
    this.#loading.abort();
    this.#loading = new AbortController();
    this.#requested.clear();
    await this.#load(0, true);
  }

  /**
   * Replaces the row of an item, without a request to the engine.
   *
   * @param {ListItem} item
   */
  replace(item) {
    const index = this.#indexOf(item.id);
    if (index === undefined) return;
    const page = /** @type {readonly ListItem[]} */ (this.#pages.get(Math.floor(index / PAGE_ITEMS)));
    this.#pages.set(
      Math.floor(index / PAGE_ITEMS),
      page.map((each) => (each.id === item.id ? item : each)),
    );
    const focused = this.#rows.get(index)?.contains(document.activeElement)
      ? columnOf(document.activeElement)
      : undefined;
    this.#removeRow(index);
    this.#render();
    if (focused !== undefined) this.#focusIndex(index, focused);
    if (this.#requested.size > 0) this.reload();
  }

  /**
   * Removes an item from the list.
   *
   * @param {number} id
   */
  remove(id) {
    const index = this.#indexOf(id);
    if (index === undefined) return;
    const at = Math.floor(index / PAGE_ITEMS);
    const page = /** @type {readonly ListItem[]} */ (this.#pages.get(at)).filter((each) => each.id !== id);
    // All later items have moved up by one: their pages are loaded again.
    for (const number of [...this.#pages.keys()]) if (number > at) this.#pages.delete(number);
    this.#pages.set(at, page);
    this.#total--;
    for (const row of [...this.#rows.keys()]) if (row >= index) this.#removeRow(row);
    this.#showStatus();
    this.#render();
    this.#focusIndex(Math.min(index, this.#total - 1), 0);
    this.reload();
  }

  /**
   * Returns the item before or after another one; after the last one comes the first.
   *
   * @param {number} id
   * @param {1 | -1} step
   */
  async neighbour(id, step) {
    const index = this.#indexOf(id);
    if (index === undefined || this.#total === 0) return undefined;
    return this.itemAt((index + step + this.#total) % this.#total);
  }

  /**
   * Returns the item at an index of the list, from 0; undefined if there is none.
   *
   * @param {number} index
   */
  async itemAt(index) {
    if (index < 0 || index >= this.#total) return undefined;
    const number = Math.floor(index / PAGE_ITEMS);
    if (!this.#pages.has(number)) await this.#load(number);
    return this.#pages.get(number)?.[index % PAGE_ITEMS];
  }

  get #shownTotal() {
    return Math.min(this.#total, MAX_ROWS);
  }

  /** @param {number} id */
  #indexOf(id) {
    for (const [number, items] of this.#pages) {
      const at = items.findIndex((item) => item.id === id);
      if (at >= 0) return number * PAGE_ITEMS + at;
    }
    return undefined;
  }

  /**
   * @param {number} number
   * @param {boolean} [isFirst] replaces everything that is shown
   */
  async #load(number, isFirst = false) {
    if (this.#requested.has(number)) return;
    this.#requested.add(number);
    const { source, filter, list, problem, onPage } = this.#options;
    const { signal } = this.#loading;
    list.setAttribute("aria-busy", "true");
    try {
      const page = await source().page(filter(), number * PAGE_ITEMS, PAGE_ITEMS, signal);
      if (signal.aborted) return;
      if (this.#hasFailed) problem.hidden = true;
      this.#hasFailed = false;
      if (isFirst) this.#clear(page);
      this.#pages.set(number, page.items);
      for (const old of this.#pages.keys()) if (this.#pages.size > MAX_PAGES) this.#pages.delete(old);
      for (const [index, row] of this.#rows)
        if (!row.dataset.id && this.#itemAt(index)) this.#removeRow(index);
      this.#total = page.total;
      this.#showStatus();
      onPage(page);
      this.#render();
    } catch (error) {
      if (signal.aborted) return;
      problem.textContent = problemText(error);
      problem.hidden = false;
      this.#hasFailed = true;
    } finally {
      if (!signal.aborted) {
        this.#requested.delete(number);
        if (this.#requested.size === 0) list.removeAttribute("aria-busy");
      }
    }
  }

  /** @param {import("./playlist-source.js").ListPage} page the first page of the new list */
  #clear(page) {
    this.#pages.clear();
    for (const index of [...this.#rows.keys()]) this.#removeRow(index);
    const hasProgrammes = page.items.some(({ programmes }) => programmes.length > 0);
    this.#rowRem = hasProgrammes ? PROGRAMME_ROW_REM : ROW_REM;
    this.#measure();
  }

  /** The size of the text, and with it that of the rows, depends on the width of the window. */
  #measure() {
    const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
    const pixels = Math.round(rem * this.#rowRem);
    if (this.#rowPixels === pixels) return;
    this.#rowPixels = pixels;
    for (const index of [...this.#rows.keys()]) this.#removeRow(index);
  }

  /** @param {number} index */
  #itemAt(index) {
    return this.#pages.get(Math.floor(index / PAGE_ITEMS))?.[index % PAGE_ITEMS];
  }

  /** Creates the rows that are visible or near, and removes the others. */
  #render() {
    const { list } = this.#options;
    if (this.#rowPixels === 0 || list.offsetParent === null) return;
    const total = this.#shownTotal;
    list.style.height = `${total * this.#rowPixels}px`;
    const top = list.getBoundingClientRect().top;
    const from = Math.max(0, Math.floor(-top / this.#rowPixels) - EXTRA_ROWS);
    const to = Math.min(total, Math.ceil((window.innerHeight - top) / this.#rowPixels) + EXTRA_ROWS);
    for (const [index, row] of [...this.#rows]) {
      const isFocused = row.contains(document.activeElement) && index < total;
      if ((index < from || index >= to) && !isFocused) this.#removeRow(index);
    }
    for (let index = from; index < to; index++) if (!this.#rows.has(index)) this.#addRow(index);
    const missing = [...Array(Math.max(0, to - from)).keys()]
      .map((i) => Math.floor((from + i) / PAGE_ITEMS))
      .filter((number, i, all) => number !== all[i - 1] && !this.#pages.has(number));
    this.#missing = missing;
    if (missing.length > 0 && this.#loadTimer === 0)
      this.#loadTimer = window.setTimeout(() => {
        this.#loadTimer = 0;
        for (const number of this.#missing) this.#load(number);
      }, LOAD_THROTTLE_MS);
  }

  /** @param {number} index */
  #addRow(index) {
    const { list, actions } = this.#options;
    const item = this.#itemAt(index);
    const row = item
      ? itemRow(item, actions(), index + 1)
      : make("li", { class: "item loading", "aria-hidden": "true" });
    row.style.height = `${this.#rowPixels}px`;
    row.style.transform = `translateY(${index * this.#rowPixels}px)`;
    row.setAttribute("aria-setsize", String(this.#total));
    row.setAttribute("aria-posinset", String(index + 1));
    // The order of the elements is that of the list, for screen readers and arrow keys.
    const before = [...this.#rows.keys()]
      .filter((each) => each > index)
      .reduce((a, b) => Math.min(a, b), Infinity);
    list.insertBefore(row, this.#rows.get(before) ?? null);
    this.#rows.set(index, row);
  }

  /** @param {number} index */
  #removeRow(index) {
    this.#rows.get(index)?.remove();
    this.#rows.delete(index);
  }

  /**
   * @param {number} index
   * @param {number} column
   */
  async #focusIndex(index, column) {
    if (index < 0) return;
    const { list } = this.#options;
    const at = list.getBoundingClientRect().top + index * this.#rowPixels;
    if (at < 0 || at + this.#rowPixels > window.innerHeight) window.scrollBy(0, at - window.innerHeight / 2);
    await this.itemAt(index);
    this.#render();
    const row = this.#rows.get(index);
    if (row) focusRow(row, column);
  }

  #showStatus() {
    const { status, end } = this.#options;
    status.textContent = t("{count} items", { count: this.#total });
    const isCut = this.#total > MAX_ROWS;
    end.textContent = isCut
      ? t("Only the first {number} items are listed. Use the search to find others.", { number: MAX_ROWS })
      : "";
  }
}
