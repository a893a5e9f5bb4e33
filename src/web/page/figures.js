// @ts-check
/** How figures are written on the page. */

const UNITS = ["B", "kB", "MB", "GB", "TB"];

/**
 * `1.4 GB`.
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
 * The engine tells speeds in KB/s (1024 bytes).
 *
 * @param {number} kilobytesPerSecond
 */
export function speedText(kilobytesPerSecond) {
  return `${bytesText(kilobytesPerSecond * 1024)}/s`;
}

/**
 * What the status word means.
 *
 * @param {string} status
 * @param {number} peers
 */
export function statusText(status, peers) {
  if (status === "dl") return "Playing";
  if (status === "buf") return "Waiting for data";
  if (status === "check") return "Checking what is on disk";
  if (status === "err" || status === "error") return "Stopped by an error";
  return peers === 0 ? "Looking for peers" : "Filling the buffer";
}

/**
 * `1:05`, `1:02:03`.
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
 * `German` for `ger`, as the browser's user calls it.
 *
 * @param {string} code
 */
export function languageName(code) {
  if (code === "und") return "Unknown";
  try {
    return new Intl.DisplayNames(undefined, { type: "language" }).of(code) ?? code;
  } catch {
    return code; // No code that there can be: show what the file says.
  }
}

/**
 * The path of a sparkline through `values`, oldest first, in a box of `width` × `height`; the highest value touches the
 * top. Empty where there are fewer than two values.
 *
 * @param {readonly number[]} values
 * @param {number} width
 * @param {number} height
 */
export function sparklinePath(values, width, height) {
  if (values.length < 2) return "";
  const top = Math.max(1, ...values);
  const step = width / (values.length - 1);
  const points = values.map((value, i) => {
    const x = (i * step).toFixed(1);
    const y = (height - 1 - (value / top) * (height - 2)).toFixed(1);
    return `${x} ${y}`;
  });
  return `M${points.join("L")}`;
}
