// @ts-check
import { problemText } from "./api.js";
import { confirmFirst } from "./playlist-dialog.js";
import { action, byId, make, select } from "./playlist-dom.js";

/**
 * @typedef {{
 *   api: import("./api.js").EngineApi,
 *   copy: (text: string) => void,
 *   say: (text: string) => void,
 *   entered: () => void,
 * }} ShareParts
 */

/** The links for other players, and who else may come in. */
export class Share {
  #parts;
  #link = byId("share-link", HTMLInputElement);
  #what = byId("share-what", HTMLElement);
  #form = byId("share-form", HTMLSelectElement);
  #download = byId("share-download", HTMLAnchorElement);
  #list = select([], "");

  /** @param {ShareParts} parts */
  constructor(parts) {
    this.#parts = parts;
    this.#what.append(this.#list);
    this.showLists([]);
    this.#form.addEventListener("change", () => this.#showLink());
    byId("share-copy", HTMLButtonElement).addEventListener("click", () => parts.copy(this.#link.value));
    const isLoopback = /^(?:localhost|127\.|\[::1\])/.test(location.hostname);
    byId("share-loopback", HTMLElement).hidden = !isLoopback;
    byId("share-browser", HTMLElement).hidden = isLoopback;
    byId("share-play-link", HTMLElement).textContent = `${location.origin}/`;
    this.#connectSwitches();
    this.#connectToken();
  }

  /**
   * What can be exported by itself.
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
    fresh.setAttribute("aria-label", "What is in the list");
    fresh.addEventListener("change", () => this.#showLink());
    this.#list.replaceWith(fresh);
    this.#list = fresh;
    this.#showLink();
  }

  /**
   * Shows what fits this device: doors and token on the engine's own computer, a field for the token elsewhere.
   *
   * @param {import("./api.js").Rights} rights
   */
  showRights(rights) {
    const { isAtHome } = this.#parts.api;
    byId("share-doors", HTMLElement).hidden = !isAtHome;
    byId("share-token", HTMLElement).hidden = !isAtHome;
    byId("share-forget", HTMLElement).hidden = isAtHome || rights !== "full";
    if (isAtHome) void this.#showDoors();
  }

  /** Who is let in now, and where they find us. What cannot be asked is left as the page says it. */
  async #showDoors() {
    const { api } = this.#parts;
    /** @type {{ allow_intranet_access: boolean, allow_remote_access: boolean, addresses: string[] }} */
    let settings;
    try {
      settings = await api.call("get_server_settings");
    } catch {
      return;
    }
    byId("door-house-state", HTMLElement).textContent = settings.allow_intranet_access
      ? "Devices of the same network are let in."
      : "Devices of the same network are kept out.";
    byId("door-internet-state", HTMLElement).textContent = settings.allow_remote_access
      ? "The Internet is let in: whoever finds this address."
      : "The rest of the Internet is kept out.";
    if (settings.addresses.length === 0) return;
    const links = settings.addresses.flatMap((url, i) => [
      ...(i > 0 ? [", "] : []),
      make("a", { href: url }, url),
    ]);
    byId("share-addresses", HTMLElement).replaceChildren(
      "For other devices, open this page by ",
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
    const path = isPart ? `/playlist/${chosen}.m3u` : "/playlist/get";
    const text = query.size > 0 ? `?${query}` : "";
    this.#link.value = `${location.origin}${path}${text}`;
    query.set("download", "1");
    this.#download.href = `${path}?${query}`;
  }

  #connectSwitches() {
    const { api, say } = this.#parts;
    const problem = byId("share-problem", HTMLElement);
    /** @type {(method: string, value: boolean, done: string) => Promise<void>} */
    const set = async (method, value, done) => {
      problem.hidden = true;
      try {
        await api.call(method, { value });
        say(done);
        await this.#showDoors();
      } catch (error) {
        problem.textContent = problemText(error);
        problem.hidden = false;
      }
    };
    byId("door-house", HTMLElement).append(
      action("Let them in", () =>
        set("set_allow_intranet_access", true, "Devices of this network are let in"),
      ),
      action("Keep them out", () =>
        set("set_allow_intranet_access", false, "Only this computer is let in now"),
      ),
    );
    const open = () =>
      confirmFirst(
        "Let the Internet in?",
        "Anybody who finds this address can then watch through this engine, use its connection and see the playlist. Do it only behind a proxy or a VPN of your own.",
        "Let everybody in",
        async () => {
          await api.call("set_allow_remote_access", { value: true });
          say("The Internet is let in");
          await this.#showDoors();
        },
      );
    byId("door-internet", HTMLElement).append(
      action("Let everybody in…", open, "danger"),
      action("Keep everybody out", () => set("set_allow_remote_access", false, "The Internet is kept out")),
    );
  }

  #connectToken() {
    const { api, copy, entered } = this.#parts;
    byId("share-token-copy", HTMLElement).append(action("Copy the access token", () => copy(api.token)));
    byId("share-forget", HTMLElement).append(
      action("Forget the token of this browser", async () => {
        await api.forgetToken();
        entered();
      }),
    );
  }
}

/**
 * The line that says why one may only look, and the field for a token.
 *
 * @param {HTMLElement} shown
 * @param {import("./api.js").EngineApi} api
 * @param {() => void} entered
 */
export function showReadOnly(shown, api, entered) {
  const token = make("input", {
    type: "password",
    autocomplete: "off",
    "aria-label": "Access token",
    required: true,
  });
  const problem = make("p", { class: "problem", role: "alert", hidden: true });
  const form = make("form", { class: "row" }, token, make("button", { type: "submit" }, "Edit from here"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await api.useToken(token.value);
      entered();
    } catch (error) {
      problem.textContent = problemText(error);
      problem.hidden = false;
    }
  });
  shown.replaceChildren(
    make(
      "details",
      {},
      make(
        "summary",
        {},
        "You can watch from here. Editing is for the engine's own computer, or for who has its token.",
      ),
      make(
        "p",
        {},
        "So not every guest of your network can change your lists. On the engine's own computer, copy the access token (Playlist, Devices); paste it here once:",
      ),
      form,
      problem,
    ),
  );
  shown.hidden = false;
}
