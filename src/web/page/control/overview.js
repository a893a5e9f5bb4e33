// @ts-check
import { SpeedChart } from "../parts/chart.js";
import { make } from "../parts/dom.js";
import { bytesText, contentName } from "../parts/figures.js";
import { KeyedList } from "../parts/keyed-list.js";
import { t } from "../parts/text.js";
import { fetchDiagnosis } from "./health.js";
import { sessionRow } from "./session-row.js";
import { TransferRow } from "./transfer-row.js";
import { VerdictCard } from "./verdict.js";

/**
 * @typedef {import("../parts/live-data.js").SessionFigures} SessionFigures
 * @typedef {import("../parts/live-data.js").TransferFigures} TransferFigures
 */

const VERDICTS = {
  ok: t("Everything works"),
  note: t("Everything works"),
  warn: t("The engine works, with a warning"),
  fail: t("Something is wrong"),
};

/**
 * The page Overview: one verdict, the speeds, and every session and transfer.
 *
 * @param {import("../parts/live-data.js").LiveContext} context
 * @returns {import("../parts/place.js").View}
 */
export function overviewView({ api, live }) {
  const verdict = new VerdictCard();
  const down = make("dd", {});
  const up = make("dd", {});
  const peers = make("dd", {});
  const disk = make("dd", {});
  const memory = make("dd", {});
  const chart = new SpeedChart();
  const totals = make(
    "section",
    { class: "card totals", "aria-label": t("Speeds") },
    make(
      "dl",
      { class: "figures" },
      make("div", { class: "is-down" }, make("dt", {}, t("Download")), down),
      make("div", { class: "is-up" }, make("dt", {}, t("Upload")), up),
      make("div", {}, make("dt", {}, t("Peers")), peers),
      make("div", {}, make("dt", {}, t("Disk cache")), disk),
      make("div", {}, make("dt", {}, t("Memory for pieces")), memory),
    ),
    chart.element,
  );
  const sessions = make("ul", { class: "rows" });
  const transfers = make("div", { class: "rows" });
  const noSessions = make("p", { class: "soft" }, t("No player is connected."));
  const noTransfers = make("p", { class: "soft" }, t("No content is open."));
  /** @type {Map<string, string>} */
  const names = new Map();
  const nameOf = (/** @type {string} */ infohash) => contentName(names.get(infohash) ?? infohash);
  const sessionList = new KeyedList(
    sessions,
    (/** @type {SessionFigures} */ { infohash, key }) => `${infohash}/${key}`,
    () => sessionRow(nameOf),
  );
  const transferList = new KeyedList(
    transfers,
    (/** @type {TransferFigures} */ { infohash }) => infohash,
    () => new TransferRow(api, live),
  );
  const problem = make("p", { class: "problem", role: "status", hidden: true });
  const element = make(
    "div",
    { class: "page" },
    problem,
    verdict.element,
    totals,
    make("section", { class: "card" }, make("h2", {}, t("Players")), sessions, noSessions),
    make("section", { class: "card" }, make("h2", {}, t("Transfers")), transfers, noTransfers),
  );

  function update() {
    problem.hidden = live.problem === "";
    problem.textContent = live.problem;
    const status = live.get("status");
    const open = live.get("transfers");
    const played = live.get("sessions");
    if (status === undefined || open === undefined || played === undefined) return;
    down.textContent = `${bytesText(status.speed_down)}/s`;
    up.textContent = `${bytesText(status.speed_up)}/s`;
    peers.textContent = String(open.reduce((sum, each) => sum + each.peers, 0));
    const { active, inactive, limit, free, memory: inMemory } = status.cache;
    disk.textContent = t("{used} of {limit}, {free} free", {
      used: bytesText(active + inactive),
      limit: bytesText(limit),
      free: bytesText(free),
    });
    memory.textContent = bytesText(inMemory);
    for (const { infohash, name } of open) names.set(infohash, name);
    chart.update((live.get("speeds") ?? []).map(([at, down, up]) => ({ at, down, up })));
    sessionList.update(played);
    transferList.update(open);
    noSessions.hidden = played.length > 0;
    noTransfers.hidden = open.length > 0;
  }

  async function judge() {
    verdict.check();
    const { rows } = await fetchDiagnosis(api);
    const order = /** @type {const} */ (["fail", "warn", "note", "ok"]);
    const level = order.find((each) => rows.some((row) => row.level === each)) ?? "ok";
    const worst = rows.filter((row) => row.level === level && (level === "fail" || level === "warn"));
    verdict.show(
      level,
      VERDICTS[level],
      ...worst.map(({ name, text, advice }) =>
        make("p", {}, `${name}: ${text}`, advice === null ? undefined : make("small", {}, ` ${advice}`)),
      ),
      make("a", { href: "#/control/health" }, t("All checks")),
    );
  }

  let release = () => {};
  return {
    element,
    async show() {
      release = live.listen(api, update);
      await judge();
    },
    hide: () => release(),
  };
}
