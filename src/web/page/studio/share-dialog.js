// @ts-check
import { openDialog } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { appUrl } from "../parts/place.js";
import { qrCode } from "../parts/qr-code.js";
import { t } from "../parts/text.js";
import { copyLink } from "../parts/toast.js";

/**
 * Opens the dialog with the ways to a broadcast: its link with a QR code, the page for viewers, and HTML code
 * that embeds it in a web site.
 *
 * @param {import("./contract.js").Broadcast} broadcast
 */
export async function openShareDialog({ title, link, infohash }) {
  const url = String(link);
  const page = appUrl(`watch/${infohash}`);
  const code = make("div", { class: "qr" });
  const dialog = openDialog(
    t("Share {title}", { title }),
    code,
    part(t("Link for Sluice and compatible players"), url),
    part(t("Page for viewers"), page),
    part(t("HTML code that embeds the viewers’ page in a web site"), embedCode(title, page)),
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
 * @param {string} page
 */
function embedCode(title, page) {
  // In a document that is not shown, the element does not load the page.
  const frame = document.implementation.createHTMLDocument("").createElement("iframe");
  frame.src = `${page}?embed=1`;
  frame.title = title;
  frame.width = "640";
  frame.height = "400";
  frame.allow = "autoplay; fullscreen; picture-in-picture";
  // Not a style: the security policy of this page applies to this document as well, and forbids style attributes.
  frame.setAttribute("frameborder", "0");
  return frame.outerHTML;
}
