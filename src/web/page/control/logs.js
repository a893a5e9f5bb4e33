// @ts-check
import { action, make, select } from "../parts/dom.js";
import { saveFile } from "../parts/rows.js";
import { t } from "../parts/text.js";

/** @typedef {import("../parts/live-data.js").LogLine} LogLine */

const RANKS = { error: 0, warn: 1, info: 2, debug: 3 };
/** More lines than a screen shows make the page slow; a filter finds older ones. */
const MAX_SHOWN = 500;

/**
 * The page Logs: the latest lines, live, filtered by level and text.
 *
 * @param {import("../parts/live-data.js").LiveContext} context
 * @returns {import("../parts/place.js").View}
 */
export function logsView({ api, live }) {
  const level = select(
    [
      ["error", t("Errors")],
      ["warn", t("Warnings and errors")],
      ["info", t("Information")],
      ["debug", t("Everything")],
    ],
    "info",
  );
  level.setAttribute("aria-label", t("Level"));
  const search = make("input", {
    type: "search",
    placeholder: t("Filter by text"),
    "aria-label": t("Filter by text"),
  });
  const pause = make("input", { type: "checkbox" });
  const count = make("span", { class: "soft", role: "status" });
  const lines = make("ol", { class: "log", tabindex: "0", "aria-label": t("Log lines, newest last") });
  const [before, after] = t(
    "The engine remembers its latest 2,000 lines. Lines of the level debug exist only if {setting} is debug; it applies at once.",
  ).split("{setting}");
  const hint = make(
    "p",
    { class: "hint" },
    before,
    make("a", { href: "#/control/settings/log" }, t("the setting log")),
    after,
  );
  let shownNumber = 0;

  function update(isNew = true) {
    const all = live.get("log") ?? [];
    const last = all[all.length - 1]?.number ?? 0;
    if (isNew && (pause.checked || last === shownNumber)) return;
    shownNumber = last;
    const matching = filtered(all);
    const isAtEnd = lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 20;
    lines.replaceChildren(...matching.slice(-MAX_SHOWN).map(lineOf));
    count.textContent = t("{shown} of {all} lines", { shown: matching.length, all: all.length });
    if (isAtEnd) lines.scrollTop = lines.scrollHeight;
  }

  /** @param {readonly LogLine[]} all */
  function filtered(all) {
    const rank = RANKS[/** @type {keyof typeof RANKS} */ (level.value)];
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return all.filter(
      ({ level: each, part, text }) =>
        RANKS[each] <= rank && words.every((word) => `${part} ${text}`.toLowerCase().includes(word)),
    );
  }

  function save() {
    const text = filtered(live.get("log") ?? [])
      .map((line) => `${new Date(line.atMs).toISOString()} ${line.level} ${line.part}: ${line.text}\n`)
      .join("");
    saveFile("sluice.log", new Blob([text]));
  }

  level.addEventListener("change", () => update(false));
  search.addEventListener("input", () => update(false));
  pause.addEventListener("change", () => update(false));
  let release = () => {};
  return {
    element: make(
      "section",
      { class: "card" },
      make(
        "div",
        { class: "filters" },
        level,
        search,
        make("label", { class: "check" }, pause, ` ${t("Pause")}`),
        action(t("Download"), save),
        count,
      ),
      lines,
      hint,
    ),
    show() {
      release = live.listen(api, () => update());
      update(false);
    },
    hide: () => release(),
  };
}

/** @param {LogLine} line */
function lineOf({ atMs, level, part, text }) {
  const time = new Date(atMs);
  return make(
    "li",
    { class: `log-${level}` },
    make("time", { datetime: time.toISOString() }, time.toTimeString().slice(0, 8)),
    make("span", { class: "log-level" }, level),
    make("span", { class: "log-text" }, part === "" ? text : `${part}: ${text}`),
  );
}
