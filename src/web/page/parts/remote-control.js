// @ts-check
/** The controls that arrow keys can focus. */
const FOCUSABLE = "a[href], button, input, select, textarea, summary";
/** Controls that use all arrow keys themselves. */
const OWN_ARROWS = "textarea, audio, [type=number], [type=radio]";

/**
 * Makes arrow keys move the focus to the nearest control in that direction, so that a TV remote control reaches the whole
 * page. A control that uses arrow keys itself keeps them: a select element while it is open, a text field while it has text.
 *
 * @param {HTMLElement} body
 */
export function listenForRemoteControl(body) {
  /** @type {EventTarget | null} */
  let open = null;
  body.addEventListener("pointerdown", ({ target }) => {
    open = target instanceof HTMLSelectElement ? target : null;
  });
  for (const type of ["change", "focusout"])
    body.addEventListener(type, () => {
      open = null;
    });
  body.addEventListener("keydown", (event) => {
    const from = document.activeElement;
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (!(from instanceof HTMLElement)) return;
    if (from instanceof HTMLSelectElement && ["Enter", " ", "Escape"].includes(event.key))
      open = open === from || event.key === "Escape" ? null : from;
    if (!/^Arrow(?:Up|Down|Left|Right)$/.test(event.key) || open === from || usesArrow(from, event.key))
      return;
    // Nothing has the focus after a page is loaded: the first arrow key begins in its content.
    const to = from === body || from.matches("main") ? firstControl(body) : nearest(from, event.key);
    if (to === undefined && !(from instanceof HTMLSelectElement)) return;
    event.preventDefault();
    to?.focus();
    to?.scrollIntoView({ block: "nearest" });
  });
}

/**
 * Returns the first visible control of the shown place.
 *
 * @param {HTMLElement} body
 */
function firstControl(body) {
  const scope = body.querySelector("dialog[open]") || body.querySelector("main:not([hidden])") || body;
  const controls = /** @type {NodeListOf<HTMLElement>} */ (scope.querySelectorAll(FOCUSABLE));
  return [...controls].find((control) => control.offsetParent !== null && !control.matches(":disabled"));
}

/**
 * @param {HTMLElement} control
 * @param {string} key
 */
function usesArrow(control, key) {
  if (control.matches(OWN_ARROWS)) return true;
  if (!(control instanceof HTMLInputElement) || control.type === "checkbox" || control.value === "")
    return false;
  if (control.type === "range") return key === "ArrowLeft" || key === "ArrowRight";
  return key === "ArrowLeft" || key === "ArrowRight" || control.hasAttribute("list");
}

/**
 * Returns the nearest control in a direction; sideways distance counts twice.
 *
 * @param {HTMLElement} from
 * @param {string} key
 */
function nearest(from, key) {
  const scope = from.closest("dialog, .theatre") ?? document;
  const start = from.getBoundingClientRect();
  const isVertical = key === "ArrowDown" || key === "ArrowUp";
  const sign = key === "ArrowDown" || key === "ArrowRight" ? 1 : -1;
  let best;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const control of /** @type {NodeListOf<HTMLElement>} */ (scope.querySelectorAll(FOCUSABLE))) {
    if (control === from || control.matches(":disabled")) continue;
    const place = control.getBoundingClientRect();
    // A hidden control has no size.
    if (place.width === 0 || place.height === 0) continue;
    const [ahead, aside] = isVertical
      ? [
          gap(start.top, start.bottom, place.top, place.bottom, sign),
          apart(start.left, start.right, place.left, place.right),
        ]
      : [
          gap(start.left, start.right, place.left, place.right, sign),
          apart(start.top, start.bottom, place.top, place.bottom),
        ];
    if (ahead === undefined) continue;
    const distance = ahead + 2 * aside;
    if (distance < bestDistance) [best, bestDistance] = [control, distance];
  }
  return best;
}

/**
 * Returns the gap between two extents in the direction of `sign`; undefined if the other one does not lie in that direction.
 *
 * @param {number} start
 * @param {number} end
 * @param {number} otherStart
 * @param {number} otherEnd
 * @param {number} sign
 */
function gap(start, end, otherStart, otherEnd, sign) {
  const middle = (otherStart + otherEnd) / 2 - (start + end) / 2;
  if (middle * sign <= 4) return undefined;
  const free = sign > 0 ? otherStart - end : start - otherEnd;
  // Extents that overlap in this direction lie beside each other.
  return free < -4 ? undefined : Math.max(0, free);
}

/**
 * Returns the distance between two extents; 0 if they overlap.
 *
 * @param {number} start
 * @param {number} end
 * @param {number} otherStart
 * @param {number} otherEnd
 */
function apart(start, end, otherStart, otherEnd) {
  return Math.max(0, otherStart - end, start - otherEnd);
}
