// @ts-check
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
      const isForward = (event.key === "ArrowRight") === (document.documentElement.dir !== "rtl");
      buttons[at + (isForward ? 1 : -1)]?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

/**
 * Returns the column of a button in its row; 0 for other elements.
 *
 * @param {Element | null} element
 */
export function columnOf(element) {
  return Number(element?.getAttribute("data-column") ?? 0);
}

/**
 * Focuses the button of a row in a column, or its first one.
 *
 * @param {HTMLElement} row
 * @param {number} column
 */
export function focusRow(row, column) {
  const buttons = /** @type {NodeListOf<HTMLElement>} */ (row.querySelectorAll("[data-column]"));
  const fitting = [...buttons].find((button) => columnOf(button) === column) ?? buttons[0];
  fitting?.focus();
}
