// @ts-check

import { EngineApi, needsToken, problemText, sentence } from "../parts/api.js";
import { confirmFirst, openDialog } from "../parts/dialog.js";
import { action, field, make, select } from "../parts/dom.js";
import { agoText } from "../parts/figures.js";
import { appUrl } from "../parts/place.js";
import { t } from "../parts/text.js";
import { showToast } from "../parts/toast.js";
import { programmeRow } from "./programme-row.js";
import { openRecordDialog } from "./recordings.js";

/**
 * @typedef {{
 *   id: number, url: string, origin: "user" | "list", last_update: number, channels: number, programmes: number,
 *   problem: string | null,
 * }} Source
 * @typedef {{ key: string, id: string, names: string[] }} Channel
 * @typedef {{ item_id: number, title: string, channel: Channel | null, candidates: Channel[] }} Uncertain
 * @typedef {import("./programme-row.js").Programme & { item_id: number, item_title: string }} Found
 */

const REASONS = {
  chosen: t("You have chosen this channel."),
  id: t("The playlist names this channel."),
  name: t("The names are equal."),
  similar: t("The names are similar."),
};

/**
 * Makes a button open the dialog of the programme guides.
 *
 * @param {HTMLButtonElement} button
 * @param {import("../parts/live-data.js").LiveData} live
 * @param {() => void} started called when the engine has begun to fetch guides
 */
export function connectGuide(button, live, started) {
  button.addEventListener("click", async () => {
    const api = new EngineApi();
    const list = make("ul", { class: "guide-sources" });
    const url = make("input", { type: "url", required: true, placeholder: "https://…/guide.xml.gz" });
    const add = make("button", { type: "submit", class: "primary" }, t("Add"));
    const form = make("form", { class: "row", autocomplete: "off" }, url, add);
    const buttons = make(
      "div",
      { class: "dialog-buttons" },
      action(t("Refresh all"), () => run(() => api.call("epg_source_update").then(started))),
      action(t("Close"), () => dialog.close()),
    );
    const [before, after] = t(
      "A guide is an XMLTV file. Guides that your playlists name are added automatically. Players get the guide of all your channels at {address}; exported playlists name it.",
    ).split("{address}");
    const hint = make("p", { class: "hint" }, before, make("code", {}, appUrl("epg.xml.gz")), after);
    const search = programmeSearch(api, (error) => dialog.problem(error));
    const review = make("details", { class: "hint", hidden: true });
    const dialog = openDialog(t("Programme guides"), search, list, form, review, hint, buttons);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      run(async () => {
        await api.call("epg_source_add", { url: url.value.trim() });
        started();
        url.value = "";
      });
    });
    /** @param {() => Promise<unknown>} work */
    async function run(work) {
      try {
        await work();
        await show();
      } catch (error) {
        dialog.problem(error);
      }
    }
    async function show() {
      const sources = /** @type {Source[]} */ (await api.call("epg_source_get_list"));
      list.replaceChildren(...sources.map((source) => sourceRow(source, api, () => run(async () => {}))));
      const { channels, count } = await api.call("get_epg_review");
      review.hidden = count === 0;
      review.replaceChildren(
        make("summary", {}, t("Channels without a certain guide: {number}", { number: count })),
        make(
          "ul",
          { class: "guide-sources programmes" },
          .../** @type {Uncertain[]} */ (channels).map((each) =>
            uncertainRow(each, api, () => run(async () => {})),
          ),
        ),
      );
    }
    /** The refreshes when the sources were read last, as JSON. @type {string | undefined} */
    let shown;
    const update = () => {
      const tasks = live.get("tasks");
      const refreshes = JSON.stringify(
        tasks?.filter(({ actions }) => actions.includes("reload_epg_sources")),
      );
      if (tasks === undefined || refreshes === shown) return;
      shown = refreshes;
      run(async () => {});
    };
    try {
      if ((await api.enter()) !== "full") throw new Error(needsToken());
      dialog.onClose(live.listen(api, update));
    } catch (error) {
      dialog.problem(error);
    }
  });
}

/**
 * Creates a form that searches the programmes of the playlist's channels, and the list of its results.
 *
 * @param {EngineApi} api
 * @param {(error: unknown) => void} failed
 */
function programmeSearch(api, failed) {
  const query = make("input", {
    type: "search",
    required: true,
    placeholder: t("When is…"),
    "aria-label": t("Search for a programme by its title"),
  });
  const button = make("button", { type: "submit" }, t("Search"));
  const form = make("form", { class: "row", autocomplete: "off" }, query, button);
  const results = make("ul", { class: "guide-sources programmes" });
  const note = make("p", { class: "hint", role: "status" });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    note.textContent = t("Searching…");
    try {
      const found = await api.call("search_epg", { query: query.value });
      const programmes = /** @type {Found[]} */ (found.programmes);
      results.replaceChildren(
        ...programmes.map((each) => {
          const [id, title] = [each.item_id, each.item_title];
          const record = () => openRecordDialog({ id, title }, { api, notify: showToast });
          return programmeRow(each, id, title, action(t("Record…"), record));
        }),
      );
      note.textContent = !found.is_complete
        ? t("There may be more. Enter a longer part of the title.")
        : programmes.length === 0
          ? t("No channel of your playlist shows this.")
          : "";
    } catch (error) {
      note.textContent = "";
      failed(error);
    } finally {
      button.disabled = false;
    }
  });
  return make("section", {}, form, results, note);
}

/**
 * @param {Source} source
 * @param {EngineApi} api
 * @param {() => void} changed
 */
function sourceRow({ id, url, origin, last_update: at, channels, programmes, problem }, api, changed) {
  const facts =
    at === 0
      ? t("not fetched yet")
      : t("{channels} channels, {programmes} programmes, {ago}", { channels, programmes, ago: agoText(at) });
  return make(
    "li",
    {},
    make(
      "div",
      { class: "guide-source" },
      make("bdi", {}, url),
      make("small", {}, `${facts}${origin === "list" ? `; ${t("named by a playlist")}` : ""}`),
      problem === null ? undefined : make("small", { class: "problem" }, sentence(problem)),
    ),
    action(t("Remove"), () =>
      confirmFirst(t("Remove this programme guide?"), url, t("Remove"), async () => {
        await api.call("epg_source_delete", { id });
        changed();
      }),
    ),
  );
}

/**
 * A channel of the playlist for which the user may choose one of the guides.
 *
 * @param {Uncertain} channel
 * @param {EngineApi} api
 * @param {() => void} changed
 */
function uncertainRow({ item_id: id, title, channel, candidates }, api, changed) {
  const similar = candidates.map(nameOf).join(", ");
  const note =
    channel !== null
      ? t("Shows the guide of {channel}, whose name is similar.", { channel: nameOf(channel) })
      : similar === ""
        ? t("No channel of the guides has a similar name.")
        : t("Similar: {channels}", { channels: similar });
  return make(
    "li",
    {},
    make("div", { class: "guide-source" }, make("bdi", {}, title), make("small", {}, note)),
    action(t("Choose…"), () => openChannelChoice({ id, title }, { api, notify: showToast, reload: changed })),
  );
}

/**
 * Opens a dialog in which the user chooses the guide's channel of an item.
 *
 * @param {{ id: number, title: string }} item
 * @param {{ api: EngineApi, notify: (text: string) => void, reload: () => void }} options
 */
export async function openChannelChoice({ id, title }, { api, notify, reload }) {
  const query = make("input", {
    type: "search",
    placeholder: title,
    "aria-label": t("Search for a channel"),
  });
  const choices = select([["auto", t("Automatic")]], "auto");
  const reason = make("p", { class: "hint" });
  const save = action(
    t("Save"),
    async () => {
      try {
        await api.call("set_epg_match", { id, channel: choices.value });
        dialog.close();
        notify(t("Programme guide changed"));
        reload();
      } catch (error) {
        dialog.problem(error);
      }
    },
    "primary",
  );
  const cancel = action(t("Cancel"), () => dialog.close());
  const dialog = openDialog(
    t("Programme guide of {title}", { title }),
    make(
      "div",
      { class: "fields" },
      field(t("Search"), query, t("By the channel's name")),
      field(t("Channel"), choices),
    ),
    reason,
    make("div", { class: "dialog-buttons" }, cancel, save),
  );
  async function show() {
    try {
      const found = await api.call("get_epg_match", { id, query: query.value.trim() || undefined });
      /** @type {Channel[]} */
      const candidates = found.candidates;
      const isKnown = candidates.some(({ key }) => key === found.channel?.key);
      if (found.channel !== null && !isKnown) candidates.unshift(found.channel);
      const chosen = found.reason === "chosen" ? found.channel.key : "auto";
      const automatic =
        found.channel !== null && found.reason !== "chosen" ? `: ${nameOf(found.channel)}` : "";
      const options = /** @type {[string, string][]} */ ([
        ["auto", `${t("Automatic")}${automatic}`],
        ["none", t("No guide")],
        ...candidates.map((channel) => [channel.key, nameOf(channel)]),
      ]);
      choices.replaceChildren(...select(options, "auto").children);
      // After a search the best candidate is selected.
      choices.value = query.value === "" ? chosen : (options[2]?.[0] ?? chosen);
      reason.textContent =
        found.reason === null
          ? t("No channel of the guides fits for certain.")
          : REASONS[/** @type {keyof typeof REASONS} */ (found.reason)];
    } catch (error) {
      reason.textContent = problemText(error);
    }
  }
  query.addEventListener("change", show);
  await show();
}

/** @param {Channel} channel */
function nameOf({ id, names }) {
  return names.length === 0 || names[0] === id ? id : `${names[0]} (${id})`;
}
