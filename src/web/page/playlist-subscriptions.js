// @ts-check
import { problemText, sentence } from "./api.js";
import { confirmFirst, openForm } from "./playlist-dialog.js";
import { action, field, make, select } from "./playlist-dom.js";
import { agoText, untilText } from "./playlist-times.js";

/**
 * @typedef {{
 *   id: number, name: string, category: string, url: string, login: string, update_interval: number, type: string,
 *   last_update: number, next_update: number, problem?: string,
 * }} Subscription
 * @typedef {{
 *   api: import("./api.js").EngineApi,
 *   list: HTMLElement, empty: HTMLElement,
 *   categories: string,
 *   show: (subscription: Subscription) => void,
 *   loaded: (subscriptions: readonly Subscription[]) => void,
 *   started: () => void,
 *   changed: () => void,
 *   say: (text: string) => void,
 * }} SubscriptionParts
 */

/** What people choose between; the engine keeps to bounds of its own. */
const INTERVALS = /** @type {const} */ ([
  ["3600", "Every hour"],
  ["21600", "Every 6 hours"],
  ["43200", "Every 12 hours"],
  ["86400", "Every day"],
  ["604800", "Every week"],
  ["0", "Only when I say so"],
]);
const USUAL_INTERVAL = "43200";

/** Lists of other servers that the engine fetches again and again. */
export class Subscriptions {
  #parts;

  /** @param {SubscriptionParts} parts */
  constructor(parts) {
    this.#parts = parts;
  }

  /** Shows them as they are now. */
  async reload() {
    const { api, list, empty, loaded } = this.#parts;
    const { playlist } = await api.call("external_playlist_get");
    list.replaceChildren(...playlist.map((/** @type {Subscription} */ one) => this.#row(one)));
    empty.hidden = playlist.length > 0;
    loaded(playlist);
  }

  /**
   * Asks for a new one.
   *
   * @param {string} [pasted] its address, where it is known already
   */
  openNew(pasted = "") {
    const { api, started } = this.#parts;
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
    const { api, started, show, changed, say } = this.#parts;
    const { id, name, url, problem } = subscription;
    const message = make(
      "p",
      { class: "problem", hidden: !problem },
      make("bdi", {}, sentence(problem ?? "")),
    );
    /** @type {(label: string, work: () => unknown, looks?: string) => HTMLButtonElement} */
    const button = (label, work, looks) =>
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
        looks,
      );
    const remove = () =>
      confirmFirst(
        `Delete “${name}”?`,
        "What came from it goes with it, but for items that you locked.",
        "Delete",
        async () => {
          await api.call("external_playlist_delete", { id });
          await this.reload();
          changed();
          say("Deleted");
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
      const { total_items } = await this.#parts.api.call("playlist_get", {
        external_playlist_id: id,
        limit: 0,
      });
      shown.textContent = ` · ${total_items.toLocaleString()} items`;
    } catch {
      // A figure beside the name: whatever is wrong, the list itself says it.
    }
  }

  /** @param {Subscription} subscription */
  #openEdit(subscription) {
    const { api } = this.#parts;
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
   * The fields that a new one and one that is edited have in common.
   *
   * @param {Partial<Subscription>} from
   */
  #fields(from) {
    const kept = String(from.update_interval ?? USUAL_INTERVAL);
    const isUsual = INTERVALS.some(([value]) => value === kept);
    const choices = isUsual
      ? INTERVALS
      : [...INTERVALS, /** @type {const} */ ([kept, `Every ${Math.round(Number(kept) / 60)} minutes`])];
    const name = make("input", { type: "text", value: from.name ?? "", maxlength: 128, dir: "auto" });
    const category = make("input", {
      type: "text",
      value: from.category ?? "",
      maxlength: 128,
      list: this.#parts.categories,
    });
    const interval = select(choices, kept);
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
        field("Category", category, "Such as tv, movies, music"),
        field("Update", interval),
        make(
          "details",
          { open: Boolean(from.login) },
          make("summary", {}, "It asks for a login"),
          field("Login", login),
          field("Password", password),
        ),
      ],
      settings() {
        const isOpen = login.value === "" && Boolean(from.login);
        return {
          name: name.value.trim(),
          category: category.value.trim(),
          update_interval: Number(interval.value),
          login: login.value === (from.login ?? "") ? undefined : login.value,
          // Without a login there is no password either.
          password: isOpen ? "" : password.value || undefined,
        };
      },
    };
  }
}

/** @param {Subscription} subscription */
function timesText({ last_update, next_update, update_interval }) {
  const last = last_update === 0 ? "Not fetched yet" : `Updated ${agoText(last_update)}`;
  return update_interval === 0 || next_update === 0 ? last : `${last} · next ${untilText(next_update)}`;
}

/**
 * The server's name alone: the rest of such an address may hold a password.
 *
 * @param {string} url
 */
function hostOf(url) {
  return URL.canParse(url) ? new URL(url).hostname : "";
}
