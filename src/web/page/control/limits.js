// @ts-check
import { openForm } from "../parts/dialog.js";
import { field, make } from "../parts/dom.js";
import { bytesText } from "../parts/figures.js";
import { t } from "../parts/text.js";

const KIBIBYTE = 1024;

/**
 * Asks for the limits of one transfer.
 *
 * @param {import("../parts/api.js").EngineApi} api
 * @param {string} infohash
 * @param {{ download_limit: number, upload_limit: number } | undefined} present
 */
export function askForLimits(api, infohash, present) {
  const input = (/** @type {number | undefined} */ bytes) =>
    make("input", {
      type: "number",
      min: 0,
      max: 10_000_000,
      value: bytes ? Math.ceil(bytes / KIBIBYTE) : "",
    });
  const down = input(present?.download_limit);
  const up = input(present?.upload_limit);
  const bytesOf = (/** @type {HTMLInputElement} */ { value }) => Math.round(Number(value) * KIBIBYTE);
  openForm(
    t("Limit this transfer"),
    [
      field(t("Download, KiB/s"), down, t("Empty: only the limit of all transfers applies.")),
      field(t("Upload, KiB/s"), up),
    ],
    t("Save"),
    () =>
      api.call("transfer_set_limits", { infohash, download_limit: bytesOf(down), upload_limit: bytesOf(up) }),
  );
}

/**
 * Describes the limits of one transfer.
 *
 * @param {{ download_limit: number, upload_limit: number }} limits
 */
export function limitsText({ download_limit: down, upload_limit: up }) {
  const rates = [down > 0 ? `↓ ${bytesText(down)}/s` : "", up > 0 ? `↑ ${bytesText(up)}/s` : ""];
  return rates.filter(Boolean).join(" ") || t("none");
}
