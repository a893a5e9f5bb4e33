// @ts-check
/** What can be reached with the arrow keys of a remote control. */
const REACHABLE = "a[href], button, input, select, textarea, summary, video[controls]";
/** Controls that have a use for all arrow keys themselves. */
const OWN_ARROWS = "textarea, video, audio, [type=range], [type=number], [type=radio]";

/**
 * Arrow keys move from one control to the next on the screen, where the control does not use them itself: so a television's
 * remote control reaches all of the page, and gets stuck nowhere. A list of choices takes them while it is open, a field while
 * there is text in it.
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
    if (!(from instanceof HTMLElement) || from === body) return;
    if (from instanceof HTMLSelectElement && ["Enter", " ", "Escape"].includes(event.key))
      open = open === from || event.key === "Escape" ? null : from;
    if (!/^Arrow(?:Up|Down|Left|Right)$/.test(event.key) || open === from || usesArrow(from, event.key))
      return;
    const to = nearest(from, event.key);
    if (to === undefined && !(from instanceof HTMLSelectElement)) return;
    event.preventDefault();
    to?.focus();
    to?.scrollIntoView({ block: "nearest" });
  });
}

/**
 * @param {HTMLElement} control
 * @param {string} key
 */
function usesArrow(control, key) {
  if (control.matches(OWN_ARROWS)) return true;
  if (!(control instanceof HTMLInputElement) || control.type === "checkbox" || control.value === "")
    return false;
  return key === "ArrowLeft" || key === "ArrowRight" || control.hasAttribute("list");
}

/**
 * The control that is nearest in that direction; what lies beside the way counts as further.
 *
 * @param {HTMLElement} from
 * @param {string} key
 */
function nearest(from, key) {
  const scope = from.closest("dialog") ?? document;
  const start = from.getBoundingClientRect();
  const isVertical = key === "ArrowDown" || key === "ArrowUp";
  const sign = key === "ArrowDown" || key === "ArrowRight" ? 1 : -1;
  let best;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const control of /** @type {NodeListOf<HTMLElement>} */ (scope.querySelectorAll(REACHABLE))) {
    if (control === from || control.matches(":disabled")) continue;
    const place = control.getBoundingClientRect();
    // What is not shown has no place.
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
 * How far ahead one extent lies of another; undefined where it does not lie ahead.
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
  // What overlaps in the way's own direction is beside, not ahead.
  return free < -4 ? undefined : Math.max(0, free);
}

/**
 * How far two extents are apart; 0 where they overlap.
 *
 * @param {number} start
 * @param {number} end
 * @param {number} otherStart
 * @param {number} otherEnd
 */
function apart(start, end, otherStart, otherEnd) {
  return Math.max(0, otherStart - end, start - otherEnd);
}
