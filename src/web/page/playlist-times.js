// @ts-check
/** How points of time are written for people. */

const STEPS = /** @type {const} */ ([
  [60, "second"],
  [60, "minute"],
  [24, "hour"],
  [7, "day"],
  [Number.POSITIVE_INFINITY, "week"],
]);

const WORDS = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/**
 * `5 minutes ago`.
 *
 * @param {number} seconds a point of time, in UNIX seconds
 * @param {number} [now] the same, of now
 */
export function agoText(seconds, now = Date.now() / 1000) {
  return words(Math.min(0, seconds - now));
}

/**
 * `in 5 minutes`.
 *
 * @param {number} seconds a point of time, in UNIX seconds
 * @param {number} [now] the same, of now
 */
export function untilText(seconds, now = Date.now() / 1000) {
  const away = seconds - now;
  return away <= 0 ? "soon" : words(away);
}

/** @param {number} seconds */
function words(seconds) {
  let value = seconds;
  for (const [size, unit] of STEPS) {
    if (Math.abs(value) < size)
      return unit === "second" && value <= 0 ? "just now" : WORDS.format(Math.round(value), unit);
    value /= size;
  }
  return "";
}
