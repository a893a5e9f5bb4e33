// @ts-check
import { problemText, sentence } from "../parts/api.js";
import { confirmFirst, openForm } from "../parts/dialog.js";
import { action, field, make, select } from "../parts/dom.js";
import { agoText, untilText } from "../parts/figures.js";

/**
 * @typedef {{
 *   id: number, name: string, category: string, url: string, login: string, update_interval: number, type: string,
 *   last_update: number, next_update: number, problem?: string,
 * }} Subscription
 * @typedef {{
 *   api: import("../parts/api.js").EngineApi,
 *   list: HTMLElement, empty: HTMLElement,
 *   categories: string,
 *   show: (subscription: Subscription) => void,
 *   loaded: (subscriptions: readonly Subscription[]) => void,
 *   started: () => void,
 *   changed: () => void,
 *   notify: (text: string) => void,
 * }} SubscriptionOptions
 */

/** The update intervals to choose from, in seconds; the engine has limits of its own. */
const INTERVALS = /** @type {const} */ ([
  ["3600", "Every hour"],
  ["21600", "Every 6 hours"],
  ["43200", "Every 12 hours"],
  ["86400", "Every day"],
  ["604800", "Every week"],
  ["0", "Only manually"],
]);
const DEFAULT_INTERVAL = "43200";

/** The tab “Subscriptions”: playlists of other servers that the engine updates on an interval. */
export class Subscriptions {
  #options;

  /** @param {SubscriptionOptions} options */
  constructor(options) {
    this.#options = options;
  }

  /** Loads and shows the subscriptions. */
  async reload() {
    const { api, list, empty, loaded } = this.#options;
    const { playlist } = await api.call("external_playlist_get");
    list.replaceChildren(...playlist.map((/** @type {Subscription} */ each) => this.#row(each)));
    empty.hidden = playlist.length > 0;
    loaded(playlist);
  }

  /**
   * Opens the form for a new subscription.
   *
   * @param {string} [pasted] its address, if known
   */
  openNew(pasted = "") {
    const { api, started } = this.#options;
    const url = make("input", {
      type: "url",
      value: pasted,
      required: true,
      placeholder: "https://…/channels.m3u",
    });
    const { fields, settings } = this.#fields({ name: pasted === "" ? "" : hostOf(pasted), category: "" });
    openForm("Subscribe to a playlist", [field("Address", url), ...fields], "Subscribe", async () => {
      const { name, ...rest } = settings();
      const address = url.value.trim();
      await api.call("external_playlist_add", {
        type: "content",
        url: address,
        name: name || hostOf(address),
        ...rest,
      });
      await this.reload();
      started();
    });
  }

  /** @param {Subscription} subscription */
  #row(subscription) {
    const { api, started, show, changed, notify } = this.#options;
    const { id, name, url, problem } = subscription;
    const message = make(
      "p",
      { class: "problem", hidden: !problem },
      make("bdi", {}, sentence(problem ?? "")),
    );
    /** @type {(label: string, work: () => unknown, style?: string) => HTMLButtonElement} */
    const button = (label, work, style) =>
      action(
        label,
        async () => {
          try {
            await work();
          } catch (error) {
            message.textContent = problemText(error);
            message.hidden = false;
          }
        },
        style,
      );
    const remove = () =>
      confirmFirst(`Delete “${name}”?`, "This also deletes its items.", "Delete", async () => {
        await api.call("external_playlist_delete", { id });
        await this.reload();
        changed();
        notify("Deleted");
      });
    const count = make("span", {});
    this.#count(id, count);
    return make(
      "li",
      { class: "subscription" },
      make("h3", {}, make("bdi", {}, name)),
      make("p", { class: "soft" }, make("bdi", {}, hostOf(url)), count),
      make("p", { class: "soft" }, timesText(subscription)),
      message,
      make(
        "div",
        { class: "buttons" },
        button("Show items", () => show(subscription)),
        button("Update now", async () => {
          await api.call("external_playlist_update", { id });
          started();
        }),
        button("Edit", () => this.#openEdit(subscription)),
        button("Delete", remove, "danger"),
      ),
    );
  }

  /**
   * @param {number} id
   * @param {HTMLElement} shown
   */
  async #count(id, shown) {
    try {
      const { total_items } = await this.#options.api.call("playlist_get", {
        external_playlist_id: id,
        limit: 0,
      });
      shown.textContent = ` · ${total_items.toLocaleString()} items`;
    } catch {
      // The count is optional; loading the list reports the same error.
    }
  }

  /** @param {Subscription} subscription */
  #openEdit(subscription) {
    const { api } = this.#options;
    const { fields, settings } = this.#fields(subscription);
    openForm(`Edit “${subscription.name}”`, fields, "Save", async () => {
      const { name, ...rest } = settings();
      await api.call("external_playlist_edit", {
        id: subscription.id,
        name: name || subscription.name,
        ...rest,
      });
      await this.reload();
    });
  }

  /**
   * Creates the fields that the forms for a new and an existing subscription share.
   *
   * @param {Partial<Subscription>} from
   */
  #fields(from) {
    const current = String(from.update_interval ?? DEFAULT_INTERVAL);
    const isListed = INTERVALS.some(([value]) => value === current);
    const choices = isListed
      ? INTERVALS
      : [...INTERVALS, /** @type {const} */ ([current, `Every ${Math.round(Number(current) / 60)} minutes`])];
    const name = make("input", { type: "text", value: from.name ?? "", maxlength: 128, dir: "auto" });
    const category = make("input", {
      type: "text",
      value: from.category ?? "",
      maxlength: 128,
      list: this.#options.categories,
    });
    const interval = select(choices, current);
    const login = make("input", {
      type: "text",
      value: from.login ?? "",
      maxlength: 128,
      autocomplete: "off",
    });
    const password = make("input", {
      type: "password",
      maxlength: 128,
      autocomplete: "new-password",
      placeholder: from.login ? "unchanged" : undefined,
    });
    return {
      fields: [
        field("Name", name),
        field("Category", category, "For example tv, movies, music"),
        field("Update", interval),
        make(
          "details",
          { open: Boolean(from.login) },
          make("summary", {}, "Login (if the server requires one)"),
          field("Login", login),
          field("Password", password),
        ),
      ],
      settings() {
        const removesLogin = login.value === "" && Boolean(from.login);
        return {
          name: name.value.trim(),
          category: category.value.trim(),
          update_interval: Number(interval.value),
          login: login.value === (from.login ?? "") ? undefined : login.value,
          // Removing the login also removes the password.
          password: removesLogin ? "" : password.value || undefined,
        };
      },
    };
  }
}

/** @param {Subscription} subscription */
function timesText({ last_update, next_update, update_interval }) {
  const last = last_update === 0 ? "Not updated yet" : `Updated ${agoText(last_update)}`;
  return update_interval === 0 || next_update === 0
    ? last
    : `${last} · next update ${untilText(next_update)}`;
}

/**
 * Returns only the host of a URL, because the rest may contain a password.
 *
 * @param {string} url
 */
function hostOf(url) {
  return URL.canParse(url) ? new URL(url).hostname : "";
}
