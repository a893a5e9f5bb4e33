// @ts-check
import { openDialog } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { appUrl } from "../parts/place.js";
import { qrCode } from "../parts/qr-code.js";
import { t } from "../parts/text.js";
import { copyLink } from "../parts/toast.js";

/**
 * Opens the dialog with the ways to a broadcast: its link with a QR code, a link that opens this engine's page, and HTML code
 * that embeds the stream in a web page.
 *
 * @param {import("./contract.js").Broadcast} broadcast
 */
export async function openShareDialog({ title, link, infohash }) {
  const url = String(link);
  const page = appUrl(`#${url}`);
  const hls = appUrl(`ace/manifest.m3u8?infohash=${infohash}`);
  const code = make("div", { class: "qr" });
  const dialog = openDialog(
    t("Share {title}", { title }),
    code,
    part(t("Link for Sluice and compatible players"), url),
    part(t("Watch in the browser through this engine"), page),
    part(t("HTML code for a web page, with this engine's HLS stream"), embedCode(title, hls)),
    make(
      "div",
      { class: "dialog-buttons" },
      action(t("Close"), () => dialog.close()),
    ),
  );
  try {
    code.append(await qrCode(url));
  } catch (error) {
    dialog.problem(error);
  }
}

/**
 * @param {string} name
 * @param {string} text
 */
function part(name, text) {
  const input = make("input", { type: "text", value: text, readonly: true, "aria-label": name });
  return make(
    "div",
    { class: "share-way" },
    make("strong", {}, name),
    make(
      "div",
      { class: "row" },
      input,
      action(t("Copy"), () => copyLink(text)),
    ),
  );
}

/**
 * @param {string} title
 * @param {string} hls
 */
function embedCode(title, hls) {
  // In a document that is not shown, the element does not load the stream.
  const video = document.implementation.createHTMLDocument("").createElement("video");
  video.controls = true;
  video.setAttribute("playsinline", "");
  video.src = hls;
  video.title = title;
  return video.outerHTML;
}
