// @ts-check
import { problemText, sentence } from "../parts/api.js";
import { confirmFirst, openForm } from "../parts/dialog.js";
import { action, field, make, select } from "../parts/dom.js";
import { agoText, untilText } from "../parts/figures.js";
import { t } from "../parts/text.js";

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
  ["3600", t("Every hour")],
  ["21600", t("Every 6 hours")],
  ["43200", t("Every 12 hours")],
  ["86400", t("Every day")],
  ["604800", t("Every week")],
  ["0", t("Only manually")],
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
    openForm(
      t("Subscribe to a playlist"),
      [field(t("Address"), url), ...fields],
      t("Subscribe"),
      async () => {
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
      },
    );
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
      confirmFirst(
        t("Delete “{name}”?", { name }),
        t("This also deletes its items."),
        t("Delete"),
        async () => {
          await api.call("external_playlist_delete", { id });
          await this.reload();
          changed();
          notify(t("Deleted"));
        },
      );
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
        button(t("Show items"), () => show(subscription)),
        button(t("Update now"), async () => {
          await api.call("external_playlist_update", { id });
          started();
        }),
        button(t("Edit"), () => this.#openEdit(subscription)),
        button(t("Delete"), remove, "danger"),
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
      shown.textContent = ` · ${t("{count} items", { count: total_items })}`;
    } catch {
      // The count is optional; loading the list reports the same error.
    }
  }

  /** @param {Subscription} subscription */
  #openEdit(subscription) {
    const { api } = this.#options;
    const { fields, settings } = this.#fields(subscription);
    openForm(t("Edit “{name}”", { name: subscription.name }), fields, t("Save"), async () => {
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
      : [
          ...INTERVALS,
          /** @type {const} */ ([
            current,
            t("Every {number} minutes", { number: Math.round(Number(current) / 60) }),
          ]),
        ];
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
      placeholder: from.login ? t("unchanged") : undefined,
    });
    return {
      fields: [
        field(t("Name"), name),
        field(t("Category"), category, t("For example tv, movies, music")),
        field(t("Update"), interval),
        make(
          "details",
          { open: Boolean(from.login) },
          make("summary", {}, t("Login (if the server requires one)")),
          field(t("Login"), login),
          field(t("Password"), password),
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
  const last = last_update === 0 ? t("Not updated yet") : t("Updated {ago}", { ago: agoText(last_update) });
  return update_interval === 0 || next_update === 0
    ? last
    : `${last} · ${t("next update {time}", { time: untilText(next_update) })}`;
}

/**
 * Returns only the host of a URL, because the rest may contain a password.
 *
 * @param {string} url
 */
function hostOf(url) {
  return URL.canParse(url) ? new URL(url).hostname : "";
}
