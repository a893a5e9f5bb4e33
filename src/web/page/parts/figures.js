// @ts-check
import { locale as ownLocale, t } from "./text.js";

/** Formats figures and times for the page. */

const UNITS = ["B", "kB", "MB", "GB", "TB"];

/**
 * Formats a number of bytes: `1.4 GB`.
 *
 * @param {number} bytes
 */
export function bytesText(bytes) {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1)} ${UNITS[unit]}`;
}

/**
 * Returns the name of content as the page shows it: an infohash, which the engine uses until it knows a name, is shortened.
 *
 * @param {string} name
 */
export function contentName(name) {
  return /^[0-9a-f]{40}$/.test(name) ? `${name.slice(0, 8)}…` : name;
}

/**
 * Formats a speed of the engine, which is in units of 1024 bytes per second.
 *
 * @param {number} kilobytesPerSecond
 */
export function speedText(kilobytesPerSecond) {
  return `${bytesText(kilobytesPerSecond * 1024)}/s`;
}

/**
 * Describes the status of a session.
 *
 * @param {string} status
 * @param {number} peers
 */
export function statusText(status, peers) {
  if (status === "dl") return t("Playing");
  if (status === "buf") return t("Waiting for data");
  if (status === "check") return t("Checking data on disk");
  if (status === "err" || status === "error") return t("Stopped by an error");
  return peers === 0 ? t("Looking for peers") : t("Buffering");
}

/**
 * Formats a duration: `1:05`, `1:02:03`.
 *
 * @param {number} seconds
 */
export function clockText(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  /** @param {number} value */
  const two = (value) => String(value).padStart(2, "0");
  return `${hours > 0 ? `${hours}:${two(minutes)}` : minutes}:${two(whole % 60)}`;
}

/**
 * Returns the name of a language in the user's language, or in another one: `German` for `ger`.
 *
 * @param {string} code
 * @param {string} [locale]
 */
export function languageName(code, locale = ownLocale()) {
  if (code === "und") return t("Unknown");
  try {
    return new Intl.DisplayNames(locale, { type: "language" }).of(code) ?? code;
  } catch {
    return code; // An invalid code is shown as it is.
  }
}

/**
 * Returns the SVG path of a sparkline through `values`, oldest first, in a box of `width` × `height`. The highest value
 * touches the top, unless `top` is given. Returns an empty path for fewer than two values.
 *
 * @param {readonly number[]} values
 * @param {number} width
 * @param {number} height
 * @param {number} [top] the value at the top of the box
 */
export function sparklinePath(values, width, height, top = Math.max(1, ...values)) {
  if (values.length < 2) return "";
  const step = width / (values.length - 1);
  const points = values.map((value, i) => {
    const x = (i * step).toFixed(1);
    const y = (height - 1 - (value / top) * (height - 2)).toFixed(1);
    return `${x} ${y}`;
  });
  return `M${points.join("L")}`;
}

/** Formats times by locale. A formatter takes longer to make than a row of the guide. @type {Map<string, Intl.DateTimeFormat>} */
const timeFormats = new Map();

/**
 * Formats a time of the day in the browser's language: `20:15`.
 *
 * @param {number} seconds UNIX seconds
 */
export function timeText(seconds) {
  const locale = ownLocale();
  const format =
    timeFormats.get(locale) || new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" });
  timeFormats.set(locale, format);
  return format.format(seconds * 1000);
}

/** The number of each unit in the next larger one. */
const TIME_UNITS = /** @type {const} */ ([
  [60, "second"],
  [60, "minute"],
  [24, "hour"],
  [7, "day"],
  [Number.POSITIVE_INFINITY, "week"],
]);

/**
 * Formats a time in the past: `5 minutes ago`.
 *
 * @param {number} seconds UNIX seconds
 * @param {number} [now] UNIX seconds
 */
export function agoText(seconds, now = Date.now() / 1000) {
  return relativeTime(Math.min(0, seconds - now));
}

/**
 * Formats a time in the future: `in 5 minutes`.
 *
 * @param {number} seconds UNIX seconds
 * @param {number} [now] UNIX seconds
 */
export function untilText(seconds, now = Date.now() / 1000) {
  const away = seconds - now;
  return away <= 0 ? t("soon") : relativeTime(away);
}

/** @param {number} seconds */
function relativeTime(seconds) {
  let value = seconds;
  for (const [size, unit] of TIME_UNITS) {
    if (Math.abs(value) < size)
      return unit === "second" && value <= 0 ? t("just now") : relativeText(Math.round(value), unit);
    value /= size;
  }
  return "";
}

/**
 * @param {number} value
 * @param {Intl.RelativeTimeFormatUnit} unit
 */
function relativeText(value, unit) {
  // Chromium has had this since version 71.
  if (!("RelativeTimeFormat" in Intl)) return `${value} ${unit}`;
  return new Intl.RelativeTimeFormat(ownLocale(), { numeric: "auto" }).format(value, unit);
}
