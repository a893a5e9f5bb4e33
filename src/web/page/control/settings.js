// @ts-check
import { problemText } from "../parts/api.js";
import { action, make, select } from "../parts/dom.js";
import { saveFile } from "../parts/rows.js";
import { t } from "../parts/text.js";

/**
 * The result of `get_settings`.
 *
 * @typedef {import("../parts/api.js").EngineApi} EngineApi
 *
 * @typedef {object} Setting
 * @property {string} name
 * @property {string} group
 * @property {string} help
 * @property {string | null} value
 * @property {string} default
 * @property {string} expected
 * @property {string[] | null} values
 * @property {boolean} is_secret
 * @property {"flag" | "variable" | "file" | null} source
 * @property {boolean} is_host_only
 * @property {boolean} is_live a change applies without a restart
 *
 * @typedef {{ settings: Setting[], file: string | null, needs_restart: boolean, problem: string | null, is_host: boolean }} Settings
 */

/** Interval of the question whether the engine has restarted. */
const RESTART_POLL_MS = 300;
/** Time that a restart takes. */
const RESTART_MS = 2_000;
/** After this time the restart counts as failed. */
const RESTART_TIMEOUT_MS = 30_000;

/**
 * The page Settings.
 *
 * @param {import("../parts/live-data.js").LiveContext} context
 * @returns {import("../parts/place.js").View}
 */
export function settingsView({ api }) {
  const view = new SettingsView(api);
  return { element: view.element, show: ([name]) => view.load(name) };
}

/** The settings: one field per setting, in groups, with a search. */
class SettingsView {
  #api;
  #content = make("div", { class: "settings-groups" }, t("Loading …"));
  #state = make("p", { class: "settings-state", role: "status" });
  #search = make("input", {
    type: "search",
    placeholder: t("Search settings"),
    "aria-label": t("Search settings"),
  });
  #save = action(t("Save"), () => this.#run(() => this.#write(false)));
  #restart = action(t("Save and restart"), () => this.#run(() => this.#write(true)), "primary");
  #file = make("input", { type: "file", accept: ".json,application/json", hidden: true });
  /** Changed values by setting name; null restores the default. @type {Map<string, string | null>} */
  #changes = new Map();
  /** @type {Settings | undefined} */
  #settings;
  /** The settings that the fields show, as JSON. */
  #drawn = "";

  /** @param {EngineApi} api */
  constructor(api) {
    this.#api = api;
    this.#search.addEventListener("input", () => this.#filter());
    this.#file.addEventListener("change", () => this.#run(() => this.#import()));
    const buttons = make(
      "div",
      { class: "settings-buttons" },
      action(t("Export"), () => this.#export()),
      action(t("Import"), () => this.#file.click()),
      make("span", { class: "settings-space" }),
      this.#save,
      this.#restart,
    );
    this.element = make(
      "section",
      { class: "card settings" },
      this.#search,
      this.#content,
      this.#file,
      make("div", { class: "settings-foot" }, this.#state, buttons),
    );
  }

  /** @param {string} [name] shows only this setting */
  async load(name) {
    if (name !== undefined) this.#search.value = name;
    const settings = /** @type {Settings} */ (await this.#api.call("get_settings"));
    this.#settings = settings;
    const drawn = JSON.stringify(settings);
    // Fields that are still right keep the focus and what the user has typed.
    if (drawn !== this.#drawn) this.#draw(settings);
    this.#drawn = drawn;
    this.#filter();
    this.#showState();
  }

  /** @param {Settings} settings */
  #draw(settings) {
    const titles = [...new Set(settings.settings.map(({ group }) => group))];
    this.#content.replaceChildren(
      ...titles.map((title) =>
        make(
          "section",
          { class: "settings-group" },
          make("h2", {}, title),
          ...settings.settings
            .filter(({ group }) => group === title)
            .map((setting) => this.#row(setting, settings.is_host)),
        ),
      ),
    );
  }

  /**
   * @param {Setting} setting
   * @param {boolean} isHost
   */
  #row(setting, isHost) {
    const { name, help, expected, source } = setting;
    const locked = lockReason(setting, isHost);
    const id = `setting-${name}`;
    const input = inputOf(setting);
    input.id = id;
    input.disabled = locked !== undefined;
    input.setAttribute("aria-describedby", `${id}-help`);
    const initial = input.value;
    // The page may be shown again while a change is not saved.
    const changed = this.#changes.get(name);
    if (changed !== undefined) input.value = changed ?? defaultText(setting);
    input.addEventListener("input", () => {
      if (input.value === initial) this.#changes.delete(name);
      else this.#changes.set(name, input.value.trim() === "" ? null : input.value.trim());
      this.#showState();
    });
    const reset = action(t("Use default"), () => {
      this.#changes.set(name, null);
      input.value = defaultText(setting);
      this.#showState();
    });
    reset.hidden = source !== "file" || locked !== undefined;
    reset.className = "link";
    return make(
      "div",
      { class: "setting", "data-text": `${name} ${help}`.toLowerCase() },
      make(
        "label",
        { for: id },
        labelOf(name),
        make("code", {}, `--${name}`),
        setting.is_live ? undefined : make("small", { class: "needs-restart" }, t("needs a restart")),
      ),
      make("div", { class: "setting-value" }, input, reset),
      make(
        "small",
        { id: `${id}-help` },
        `${help}. ${locked ?? (setting.values === null && expected !== "a text" ? t("Expected: {what}.", { what: expected }) : "")}`,
      ),
    );
  }

  #filter() {
    const words = this.#search.value.toLowerCase().split(/\s+/);
    for (const group of this.#content.querySelectorAll("section")) {
      let shown = 0;
      for (const row of group.querySelectorAll(".setting")) {
        const text = row.getAttribute("data-text") ?? "";
        const isShown = words.every((word) => text.includes(word));
        /** @type {HTMLElement} */ (row).hidden = !isShown;
        if (isShown) shown++;
      }
      group.hidden = shown === 0;
    }
  }

  #showState() {
    const changed = this.#changes.size;
    const settings = this.#settings;
    this.#save.disabled = changed === 0;
    this.#restart.hidden = !this.#needsRestart() && settings?.needs_restart !== true;
    this.#restart.textContent = changed === 0 ? t("Restart") : t("Save and restart");
    this.#state.classList.toggle("problem", settings?.problem != null);
    this.#state.textContent =
      settings?.problem != null
        ? t("The engine could not start with the changed settings and uses the previous ones: {problem}", {
            problem: settings.problem,
          })
        : changed > 0
          ? `${t("{count} changes not saved.", { count: changed })} ${this.#needsRestart() ? t("Some of them apply after a restart, which interrupts playback.") : t("They apply at once, without a restart.")}`
          : settings?.needs_restart
            ? t("Saved. The changes apply after a restart.")
            : settings?.file
              ? t("Saved in {file}", { file: settings.file })
              : "";
  }

  /** Whether a change that is not saved needs a restart. */
  #needsRestart() {
    const live = new Set(this.#settings?.settings.filter((each) => each.is_live).map(({ name }) => name));
    return [...this.#changes.keys()].some((name) => !live.has(name));
  }

  /** @param {boolean} restarts */
  async #write(restarts) {
    if (this.#changes.size > 0)
      await this.#api.call("set_settings", { values: JSON.stringify(Object.fromEntries(this.#changes)) });
    const port = this.#changes.get("http-port");
    this.#forget();
    if (!restarts) return this.load();
    await this.#api.call("restart_engine");
    this.#state.textContent = t("Restarting …");
    if (typeof port === "string" && port !== "0") {
      // The present address stops answering, unless the new port is refused.
      setTimeout(() => location.assign(`${location.protocol}//${location.hostname}:${port}/`), RESTART_MS);
      return;
    }
    await restarted(this.#api);
    await this.load();
  }

  /** Downloads the values of the config file, in its format. */
  #export() {
    const written = (this.#settings?.settings ?? []).filter(({ value, source }) => value !== null && source);
    const content = Object.fromEntries(written.map(({ name, value }) => [name, value]));
    const blob = new Blob([`${JSON.stringify(content, undefined, 2)}\n`], { type: "application/json" });
    saveFile("sluice-settings.json", blob);
  }

  async #import() {
    const file = this.#file.files?.[0];
    this.#file.value = "";
    if (file === undefined) return;
    const text = await file.text();
    /** @type {unknown} */
    let content;
    try {
      content = JSON.parse(text);
    } catch {
      throw new Error(t("{name} is not a settings file: it is not JSON.", { name: file.name }));
    }
    if (typeof content !== "object" || content === null || Array.isArray(content))
      throw new Error(t("{name} is not a settings file: expected a JSON object.", { name: file.name }));
    const values = Object.fromEntries(Object.entries(content).map(([name, value]) => [name, String(value)]));
    await this.#api.call("set_settings", { values: JSON.stringify(values) });
    this.#forget();
    await this.load();
  }

  /** Forgets the changes that are not saved, so that the fields are drawn again. */
  #forget() {
    this.#changes.clear();
    this.#drawn = "";
  }

  /** @param {() => Promise<unknown>} work */
  async #run(work) {
    try {
      await work();
    } catch (error) {
      this.#state.classList.add("problem");
      this.#state.textContent = problemText(error);
    }
  }
}

/**
 * Returns why a setting cannot be changed here; undefined if it can.
 *
 * @param {Setting} setting
 * @param {boolean} isHost
 */
function lockReason({ name, source, is_host_only: isHostOnly }, isHost) {
  if (source === "flag")
    return t("The flag {flag} sets it; start the engine without the flag to change it.", {
      flag: `--${name}`,
    });
  if (source === "variable")
    return t("The variable {variable} sets it; unset the variable to change it.", {
      variable: `SLUICE_${name.toUpperCase().replaceAll("-", "_")}`,
    });
  return isHostOnly && !isHost ? t("It can be changed only on the engine's computer.") : undefined;
}

/** @param {Setting} setting */
function inputOf({ value, values, default: standard, is_secret: isSecret, source }) {
  if (values !== null)
    return select(
      values.map(
        (each) =>
          /** @type {const} */ ([each, each === standard ? t("{value} (default)", { value: each }) : each]),
      ),
      value ?? standard,
    );
  const placeholder =
    isSecret && source !== null ? t("set; type to replace it") : t("{value} (default)", { value: standard });
  return make("input", {
    type: isSecret ? "password" : "text",
    value: value ?? "",
    placeholder,
    spellcheck: "false",
    autocomplete: "off",
  });
}

/**
 * What the field of a setting shows for the default.
 *
 * @param {Setting} setting
 */
function defaultText({ values, default: standard }) {
  return values === null ? "" : standard;
}

/**
 * The name of a setting as a label: `cache-limit` becomes `Cache limit`.
 *
 * @param {string} name
 */
function labelOf(name) {
  const words = name
    .split("-")
    .map((word) => (/^(http|p2p|dht|lsd|ip|url|urls|lan)$/.test(word) ? word.toUpperCase() : word));
  const text = words.join(" ").replace("utp", "uTP");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * Resolves when the engine answers after a restart.
 *
 * @param {EngineApi} api
 */
async function restarted(api) {
  const deadline = Date.now() + RESTART_TIMEOUT_MS;
  // The old engine answers for a moment; the connection fails once, or the new one answers after it.
  await new Promise((resolve) => setTimeout(resolve, 2 * RESTART_POLL_MS));
  for (;;) {
    try {
      await api.call("get_version");
      return;
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, RESTART_POLL_MS));
    }
  }
}
