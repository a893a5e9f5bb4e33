// @ts-check

import { problemText } from "../parts/api.js";
import { confirmFirst } from "../parts/dialog.js";
import { action, byId, make, select } from "../parts/dom.js";
import { appUrl } from "../parts/place.js";
import { tokenForm } from "../parts/token-form.js";

/**
 * @typedef {{
 *   api: import("../parts/api.js").EngineApi,
 *   copy: (text: string) => void,
 *   notify: (text: string) => void,
 *   rightsChanged: () => void,
 * }} ShareOptions
 */

/** The tab “Devices”: links for other players, the access token, and the access switches. */
export class Share {
  #options;
  #link = byId("share-link", HTMLInputElement);
  #what = byId("share-what", HTMLElement);
  #form = byId("share-form", HTMLSelectElement);
  #download = byId("share-download", HTMLAnchorElement);
  #list = select([], "");

  /** @param {ShareOptions} options */
  constructor(options) {
    this.#options = options;
    this.#what.append(this.#list);
    this.showLists([]);
    this.#form.addEventListener("change", () => this.#showLink());
    byId("share-copy", HTMLButtonElement).addEventListener("click", () => options.copy(this.#link.value));
    const isLoopback = /^(?:localhost|127\.|\[::1\])/.test(location.hostname);
    byId("share-loopback", HTMLElement).hidden = !isLoopback;
    byId("share-browser", HTMLElement).hidden = isLoopback;
    byId("share-play-link", HTMLElement).textContent = appUrl("");
    this.#connectSwitches();
    this.#connectToken();
  }

  /**
   * Shows the playlists that can be exported separately.
   *
   * @param {readonly { id: number, name: string }[]} subscriptions
   */
  showLists(subscriptions) {
    const fresh = select(
      [
        ["all", "Everything"],
        ["favorites", "Favourites"],
        ...subscriptions.map(({ id, name }) => /** @type {const} */ ([String(id), name.slice(0, 100)])),
      ],
      this.#list.value || "all",
    );
    fresh.setAttribute("aria-label", "Contents of the playlist");
    fresh.addEventListener("change", () => this.#showLink());
    this.#list.replaceWith(fresh);
    this.#list = fresh;
    this.#showLink();
  }

  /**
   * Shows the access switches and the token on the engine's own computer, and a button to forget the token elsewhere.
   *
   * @param {import("../parts/api.js").Rights} rights
   */
  showRights(rights) {
    const { isLocal } = this.#options.api;
    byId("share-access", HTMLElement).hidden = !isLocal;
    byId("share-token", HTMLElement).hidden = !isLocal;
    byId("share-forget", HTMLElement).hidden = isLocal || rights !== "full";
    if (isLocal) void this.#showAccess();
  }

  /** Shows the access switches and the addresses of the engine. If the request fails, the texts of the page stay. */
  async #showAccess() {
    const { api } = this.#options;
    /** @type {{ allow_intranet_access: boolean, allow_remote_access: boolean, addresses: string[] }} */
    let settings;
    try {
      settings = await api.call("get_server_settings");
    } catch {
      return;
    }
    byId("access-intranet-state", HTMLElement).textContent = settings.allow_intranet_access
      ? "Devices on the same network are allowed."
      : "Devices on the same network are blocked.";
    byId("access-internet-state", HTMLElement).textContent = settings.allow_remote_access
      ? "The Internet is allowed: anyone who finds this address can use the engine."
      : "The Internet is blocked.";
    if (settings.addresses.length === 0) return;
    const links = settings.addresses.flatMap((url, i) => [
      ...(i > 0 ? [", "] : []),
      make("a", { href: url }, url),
    ]);
    byId("share-addresses", HTMLElement).replaceChildren(
      "On other devices, open this page at ",
      ...links,
      ".",
    );
  }

  #showLink() {
    const chosen = this.#list.value;
    const query = new URLSearchParams(this.#form.value === "hls" ? { protocol: "hls" } : {});
    if (chosen === "favorites") query.set("favorites", "1");
    const isPart = /^\d+$/.test(chosen);
    if (!isPart) query.set("format", "m3u");
    const path = isPart ? `playlist/${chosen}.m3u` : "playlist/get";
    const text = query.toString() !== "" ? `?${query}` : "";
    this.#link.value = appUrl(path + text);
    query.set("download", "1");
    this.#download.href = `${path}?${query}`;
  }

  #connectSwitches() {
    const { api, notify } = this.#options;
    const problem = byId("share-problem", HTMLElement);
    /** @type {(method: string, value: boolean, done: string) => Promise<void>} */
    const set = async (method, value, done) => {
      problem.hidden = true;
      try {
        await api.call(method, { value });
        notify(done);
        await this.#showAccess();
      } catch (error) {
        problem.textContent = problemText(error);
        problem.hidden = false;
      }
    };
    byId("access-intranet", HTMLElement).append(
      action("Allow", () =>
        set("set_allow_intranet_access", true, "Devices on the same network are now allowed"),
      ),
      action("Block", () =>
        set("set_allow_intranet_access", false, "Devices on the same network are now blocked"),
      ),
    );
    const allowInternet = () =>
      confirmFirst(
        "Allow access from the Internet?",
        "Anyone who finds this address can then watch through this engine, use its connection and see the playlist. Allow it only behind a proxy or a VPN of your own.",
        "Allow",
        async () => {
          await api.call("set_allow_remote_access", { value: true });
          notify("The Internet is now allowed");
          await this.#showAccess();
        },
      );
    byId("access-internet", HTMLElement).append(
      action("Allow…", allowInternet, "danger"),
      action("Block", () => set("set_allow_remote_access", false, "The Internet is now blocked")),
    );
  }

  #connectToken() {
    const { api, copy, rightsChanged } = this.#options;
    byId("share-token-copy", HTMLElement).append(action("Copy the access token", () => copy(api.token)));
    byId("share-forget", HTMLElement).append(
      action("Remove the access token from this browser", async () => {
        await api.forgetToken();
        rightsChanged();
      }),
    );
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
        "You can watch on this device. To edit the playlist here, enter the engine's access token.",
      ),
      tokenForm(api, rightsChanged),
    ),
  );
  shown.hidden = false;
}
