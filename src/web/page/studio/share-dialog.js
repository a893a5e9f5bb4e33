// @ts-check
import { openDialog } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { appUrl } from "../parts/place.js";
import { qrCode } from "../parts/qr-code.js";
import { saveFile } from "../parts/rows.js";
import { t } from "../parts/text.js";
import { copyLink } from "../parts/toast.js";

/**
 * Opens the dialog with the ways to a broadcast: its link with a QR code, the page for viewers, and HTML code
 * that embeds it in a web site.
 *
 * @param {import("./contract.js").Broadcast} broadcast
 * @param {import("../parts/api.js").EngineApi} api
 */
export async function openShareDialog({ name, title, link, infohash }, api) {
  const url = String(link);
  const page = appUrl(`watch/${infohash}`);
  const code = make("div", { class: "qr" });
  const dialog = openDialog(
    t("Share {title}", { title }),
    code,
    part(t("Link for Sluice and compatible players"), url),
    part(t("Page for viewers"), page),
    part(t("HTML code that embeds the viewers’ page in a web site"), embedCode(title, page)),
    viewerPage(String(infohash)),
    api.isLocal ? relayPass(name, api, (error) => dialog.problem(error)) : undefined,
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
 * The page for viewers as an archive, for another web server.
 *
 * @param {string} infohash
 */
function viewerPage(infohash) {
  const engine = make("input", {
    type: "url",
    value: appUrl(""),
    required: true,
    "aria-label": t("Address of this engine for viewers"),
  });
  return make(
    "form",
    { class: "share-way", method: "get", onsubmit: download },
    make("strong", {}, t("Page for viewers on another web server")),
    make("div", { class: "row" }, engine, make("button", { type: "submit" }, t("Download"))),
    make(
      "small",
      {},
      t(
        "A ZIP file for any web server. The page connects to the engine at this address, which its viewers have to reach.",
      ),
    ),
  );

  /** @param {Event} event */
  function download(event) {
    event.preventDefault();
    const query = new URLSearchParams({ engine: engine.value });
    make("a", { href: `app/viewer-page/${infohash}.zip?${query}`, download: "" }).click();
  }
}

/**
 * @param {string} name
 * @param {import("../parts/api.js").EngineApi} api
 * @param {(error: unknown) => void} failed
 */
function relayPass(name, api, failed) {
  const save = action(t("Download a relay pass"), async () => {
    try {
      const pass = await api.file("broadcast_get_relay_pass", { name });
      saveFile(pass.name, pass.file);
    } catch (error) {
      failed(error);
    }
  });
  return make(
    "div",
    { class: "share-way" },
    make("strong", {}, t("Relay")),
    make("div", { class: "row" }, save),
    make(
      "small",
      {},
      t("Give the file to the operator of one relay. It is valid for a year and cannot change the stream."),
    ),
  );
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
