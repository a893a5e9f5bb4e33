// @ts-check
import { problemText } from "../parts/api.js";
import { openDialog } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { timeText } from "../parts/figures.js";
import { t } from "../parts/text.js";
import { programmeRow } from "./programme-row.js";

/** The height of a row, the width of an hour, and of the column with the channels, in rem. */
const ROW_REM = 4;
const HOUR_REM = 15;
const NAME_REM = 11;
/** On a phone the names leave room for the programmes. */
const PHONE_NAME_REM = 7.5;
const PHONE_REM = 40;
/** A cell that is narrower shows no text. */
const MIN_TEXT_REM = 3;
const HOURS = 24;
/** Rows per request. */
const PAGE_ROWS = 25;
/** Pages that are kept: 1,000 channels. */
const MAX_PAGES = 40;
/** Rows above and below, and hours before and after the visible part that exist. */
const EXTRA_ROWS = 4;
const EXTRA_HOURS = 1;
/** While the user scrolls fast, rows in between are not requested. */
const LOAD_THROTTLE_MS = 80;

/**
 * @typedef {import("./playlist-source.js").ListItem} ListItem
 * @typedef {{ start: number, stop: number, title: string, description?: string }} Programme
 * @typedef {{ row: HTMLElement, name: HTMLElement, cells: Map<number, HTMLElement>, hours: string }} GridRow
 * @typedef {{
 *   page: (from: number, offset: number, limit: number) => Promise<{ total: number, items: readonly ListItem[] }>,
 *   play: (item: ListItem) => void,
 *   record: ((item: ListItem) => void) | undefined,
 * }} GridOptions `from`: UNIX time from which programmes are wanted; `record`: undefined if this page may not record
 */

/**
 * Opens the programme guide: channels below each other, 24 hours beside each other. Only the visible part exists.
 *
 * @param {GridOptions} options
 */
export function openGuideGrid({ page, play, record }) {
  const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
  const rowHeight = Math.round(ROW_REM * rem);
  const hourWidth = Math.round(HOUR_REM * rem);
  const isPhone = window.innerWidth < PHONE_REM * rem;
  const nameWidth = Math.round((isPhone ? PHONE_NAME_REM : NAME_REM) * rem);
  const start = Math.floor(Date.now() / 1_800_000) * 1800 - 1800;
  /** @type {Map<number, readonly ListItem[]>} */
  const pages = new Map();
  const requested = new Set();
  /** The rows that exist, their cells by the start of the programme, and the hours that they show. @type {Map<number, GridRow>} */
  const rows = new Map();
  let total = 0;
  let frame = 0;
  let timer = 0;

  const heads = [...Array(2 * HOURS).keys()].map((half) => {
    const head = make("span", {}, timeText(start + half * 1800));
    head.style.left = `${nameWidth + (half * hourWidth) / 2}px`;
    return head;
  });
  const corner = make("div", { class: "grid-corner" });
  corner.style.width = `${nameWidth}px`;
  const times = make("div", { class: "grid-times", "aria-hidden": "true" }, corner, ...heads);
  const now = make("div", { class: "grid-now", "aria-hidden": "true" });
  const body = make("div", { class: "grid-body", role: "list", "aria-label": t("Channels") }, now);
  const view = make(
    "div",
    { class: "grid-view", tabindex: "0", role: "region", "aria-label": t("Programme guide") },
    times,
    body,
  );
  const note = make("p", { class: "soft", role: "status" }, t("Loading"));
  const close = action(t("Close"), () => dialog.close());
  const dialog = make(
    "dialog",
    { class: "guide-grid", "aria-label": t("Programme guide") },
    make("div", { class: "row spread grid-head" }, make("h2", {}, t("Programme guide")), note, close),
    view,
  );
  dialog.addEventListener("close", () => dialog.remove());
  for (const part of [times, body]) part.style.width = `${nameWidth + HOURS * hourWidth}px`;
  const xOf = (/** @type {number} */ at) => nameWidth + ((at - start) / 3600) * hourWidth;

  /**
   * @param {ListItem} item
   * @param {Programme} programme
   */
  function choose(item, programme) {
    const isOn = programme.start <= Date.now() / 1000 && programme.stop > Date.now() / 1000;
    const watch = () => {
      dialog.close();
      play(item);
    };
    if (isOn) {
      watch();
      return;
    }
    const details = openDialog(
      programme.title,
      make(
        "ul",
        { class: "guide-sources" },
        programmeRow({ subtitle: "", ...programme }, item.id, item.title),
      ),
      make("p", {}, programme.description ?? ""),
      make(
        "div",
        { class: "dialog-buttons" },
        action(t("Close"), () => details.close()),
        record && action(t("Record…"), () => record(item)),
        action(
          t("Watch the channel"),
          () => {
            details.close();
            watch();
          },
          "primary",
        ),
      ),
    );
  }

  /**
   * @param {ListItem} item
   * @param {Programme} programme
   */
  function cellOf(item, programme) {
    const seconds = Date.now() / 1000;
    const left = Math.max(xOf(programme.start), nameWidth);
    const isOn = programme.start <= seconds && programme.stop > seconds;
    const width = Math.max(8, xOf(programme.stop) - left - 2);
    const span = `${timeText(programme.start)} – ${timeText(programme.stop)}`;
    const cell = make(
      "button",
      {
        type: "button",
        class: `grid-cell${isOn ? " on" : ""}${width < MIN_TEXT_REM * rem ? " narrow" : ""}`,
        title: `${programme.title.slice(0, 120)}\n${span}`,
        onclick: () => choose(item, programme),
      },
      make("bdi", {}, programme.title.slice(0, 120)),
      make("small", {}, span),
    );
    cell.style.left = `${left}px`;
    cell.style.width = `${width}px`;
    return cell;
  }

  /**
   * @param {number} index
   * @param {ListItem} item
   * @returns {GridRow}
   */
  function rowOf(index, item) {
    const name = make(
      "button",
      {
        type: "button",
        class: "grid-name",
        onclick() {
          dialog.close();
          play(item);
        },
      },
      make("small", {}, item.number ?? String(index + 1)),
      make("bdi", {}, item.title.slice(0, 60)),
    );
    name.style.width = `${nameWidth}px`;
    const row = make("div", { class: "grid-row", role: "listitem" }, name);
    row.style.top = `${index * rowHeight}px`;
    row.style.height = `${rowHeight}px`;
    return { row, name, cells: new Map(), hours: "" };
  }

  /**
   * Adds the cells of a row that overlap these times, in their order, and removes the others.
   *
   * @param {GridRow} row
   * @param {ListItem} item
   * @param {number} from
   * @param {number} to
   */
  function fill({ cells, name }, item, from, to) {
    const wanted = /** @type {readonly Programme[]} */ (item.programmes).filter(
      (programme) => programme.stop > Math.max(from, start) && programme.start < to,
    );
    const starts = new Set(wanted.map((programme) => programme.start));
    for (const [at, cell] of cells) {
      if (starts.has(at)) continue;
      cell.remove();
      cells.delete(at);
    }
    let before = name;
    for (const programme of wanted) {
      const cell = cells.get(programme.start) || cellOf(item, programme);
      cells.set(programme.start, cell);
      if (before.nextSibling !== cell) before.after(cell);
      before = cell;
    }
  }

  /** Returns the pages with visible rows that are not loaded. */
  function missingPages() {
    const first = Math.floor(view.scrollTop / rowHeight / PAGE_ROWS);
    const last = Math.floor((view.scrollTop + view.clientHeight) / rowHeight / PAGE_ROWS);
    return [first, last].filter((number, i, all) => number !== all[i - 1] && !pages.has(number));
  }

  function render() {
    const from = Math.max(0, Math.floor(view.scrollTop / rowHeight) - EXTRA_ROWS);
    const to = Math.min(total, Math.ceil((view.scrollTop + view.clientHeight) / rowHeight) + EXTRA_ROWS);
    // Rounded to hours, so that rows change rarely.
    const left = Math.floor(Math.abs(view.scrollLeft) / hourWidth) - EXTRA_HOURS;
    const right = Math.ceil((Math.abs(view.scrollLeft) + view.clientWidth) / hourWidth) + EXTRA_HOURS;
    const hours = `${left} ${right}`;
    for (const [index, { row }] of rows) {
      if (index >= from && index < to) continue;
      row.remove();
      rows.delete(index);
    }
    const missing = new Set();
    for (let index = from; index < to; index++) {
      const number = Math.floor(index / PAGE_ROWS);
      const item = pages.get(number)?.[index % PAGE_ROWS];
      if (item === undefined) {
        if (!pages.has(number)) missing.add(number);
        continue;
      }
      const row = rows.get(index) || rowOf(index, item);
      if (row.hours === hours) continue;
      fill(row, item, start + left * 3600, start + right * 3600);
      row.hours = hours;
      if (rows.has(index)) continue;
      rows.set(index, row);
      body.append(row.row);
    }
    if (missing.size > 0 && timer === 0)
      timer = window.setTimeout(() => {
        timer = 0;
        for (const number of missingPages()) load(number);
      }, LOAD_THROTTLE_MS);
  }

  /** @param {number} number */
  async function load(number) {
    if (requested.has(number)) return;
    requested.add(number);
    try {
      const loaded = await page(start, number * PAGE_ROWS, PAGE_ROWS);
      pages.set(number, loaded.items);
      for (const old of pages.keys()) if (pages.size > MAX_PAGES) pages.delete(old);
      total = loaded.total;
      body.style.height = `${total * rowHeight}px`;
      const hasProgrammes = [...pages.values()].some((items) =>
        items.some(({ programmes }) => programmes.length > 0),
      );
      note.textContent = hasProgrammes
        ? ""
        : t("No programmes. Add a programme guide with the button “Guide sources”.");
      render();
    } catch (error) {
      note.textContent = problemText(error);
    } finally {
      requested.delete(number);
    }
  }

  view.addEventListener(
    "scroll",
    () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(render);
    },
    { passive: true },
  );
  now.style.left = `${xOf(Date.now() / 1000)}px`;
  document.body.append(dialog);
  dialog.showModal();
  load(0);
}
