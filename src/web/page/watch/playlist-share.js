// @ts-check

import { byId, make, select } from "../parts/dom.js";
import { appUrl } from "../parts/place.js";
import { qrCode } from "../parts/qr-code.js";
import { t } from "../parts/text.js";
import { tokenForm } from "../parts/token-form.js";

/**
 * @typedef {{
 *   api: import("../parts/api.js").EngineApi,
 *   copy: (text: string) => void,
 * }} ShareOptions
 */

/** The tab “Devices”: links for other players. */
export class Share {
  #options;
  #link = byId("share-link", HTMLInputElement);
  #what = byId("share-what", HTMLElement);
  #form = byId("share-form", HTMLSelectElement);
  #alive = byId("share-alive", HTMLInputElement);
  #player = byId("share-player", HTMLSelectElement);
  /** The address of this page on other devices. */
  #address = appUrl("");
  #download = byId("share-download", HTMLAnchorElement);
  #list = select([], "");

  /** @param {ShareOptions} options */
  constructor(options) {
    this.#options = options;
    this.#what.append(this.#list);
    this.showLists([]);
    this.#form.addEventListener("change", () => this.#showLink());
    this.#alive.addEventListener("change", () => this.#showLink());
    this.#player.addEventListener("change", () => this.#showShort());
    void this.#showShort();
    byId("share-copy", HTMLButtonElement).addEventListener("click", () => options.copy(this.#link.value));
    const isLoopback = /^(?:localhost|127\.|\[::1\])/.test(location.hostname);
    byId("share-loopback", HTMLElement).hidden = !isLoopback;
    byId("share-browser", HTMLElement).hidden = isLoopback;
    byId("share-play-link", HTMLElement).textContent = appUrl("");
  }

  /**
   * Shows the playlists that can be exported separately.
   *
   * @param {readonly { id: number, name: string }[]} subscriptions
   */
  showLists(subscriptions) {
    const fresh = select(
      [
        ["all", t("Everything")],
        ["favorites", t("Favourites")],
        ...subscriptions.map(({ id, name }) => /** @type {const} */ ([String(id), name.slice(0, 100)])),
      ],
      this.#list.value || "all",
    );
    fresh.setAttribute("aria-label", t("Contents of the playlist"));
    fresh.addEventListener("change", () => this.#showLink());
    this.#list.replaceWith(fresh);
    this.#list = fresh;
    this.#showLink();
  }

  /** Shows the addresses of the engine, on its own computer. If the request fails, the texts of the page stay. */
  async showAddresses() {
    const { api } = this.#options;
    if (!api.isLocal) return;
    /** @type {{ addresses: string[] }} */
    let settings;
    try {
      settings = await api.call("get_server_settings");
    } catch {
      return;
    }
    const [address] = settings.addresses;
    if (address === undefined) return;
    this.#address = address.replace(/\/*$/, "/");
    void this.#showShort();
    const links = settings.addresses.flatMap((url, i) => [
      ...(i > 0 ? [", "] : []),
      make("a", { href: url }, url),
    ]);
    const [before = "", after = ""] = t("On other devices, open this page at {addresses}.").split(
      "{addresses}",
    );
    byId("share-addresses", HTMLElement).replaceChildren(before, ...links, after);
  }

  /** Shows the short address of the whole list for the chosen player, and its QR code. */
  async #showShort() {
    const text = `${this.#address}tv${this.#player.value === "" ? "" : `/${this.#player.value}`}`;
    byId("share-short", HTMLElement).textContent = text;
    const code = await qrCode(text);
    // Another player may have been chosen meanwhile.
    if (byId("share-short", HTMLElement).textContent === text)
      byId("share-qr", HTMLElement).replaceChildren(code);
  }

  #showLink() {
    const chosen = this.#list.value;
    const query = new URLSearchParams(this.#form.value === "hls" ? { protocol: "hls" } : {});
    if (chosen === "favorites") query.set("favorites", "1");
    if (this.#alive.checked) query.set("skip_dead", "1");
    const isPart = /^\d+$/.test(chosen);
    if (!isPart) query.set("format", "m3u");
    const path = isPart ? `playlist/${chosen}.m3u` : "playlist/get";
    const text = query.toString() !== "" ? `?${query}` : "";
    this.#link.value = appUrl(path + text);
    query.set("download", "1");
    this.#download.href = `${path}?${query}`;
  }
}

/**
 * Shows why the page is read-only, and a field for the access token.
 *
 * @param {HTMLElement} shown
 * @param {import("../parts/api.js").EngineApi} api
 * @param {() => void} rightsChanged
 */
export function showReadOnly(shown, api, rightsChanged) {
  shown.replaceChildren(
    make(
      "details",
      {},
      make(
        "summary",
        {},
        t("You can watch on this device. To edit the playlist here, enter the engine's access token."),
      ),
      tokenForm(api, rightsChanged),
    ),
  );
  shown.hidden = false;
}
