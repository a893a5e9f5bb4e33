// @ts-check
import { ApiError, needsToken, problemText } from "../parts/api.js";
import { action, make } from "../parts/dom.js";
import { bytesText } from "../parts/figures.js";
import { t } from "../parts/text.js";

/**
 * The response of `/api/diagnosis`.
 *
 * @typedef {import("../parts/api.js").EngineApi} EngineApi
 * @typedef {{ name: string, level: "ok" | "note" | "warn" | "fail", text: string, advice: string | null }} Row
 * @typedef {{ address: string, client: string, bytes_per_second_down: number, slow: string | null }} Peer
 * @typedef {{ name: string, players: { buffering: { text: string } | null }[], peers: Peer[] }} Stream
 * @typedef {{ rows: Row[], streams: Stream[] }} Diagnosis
 */

const LEVELS = { ok: t("OK"), note: t("Note"), warn: t("Warning"), fail: t("Failure") };
/** The number of peers listed for each stream, fastest first. */
const MAX_SHOWN_PEERS = 12;

/**
 * The page Health: what the engine found about ports, peers, disk and settings, and how fast each peer is.
 *
 * @param {import("../parts/live-data.js").LiveContext} context
 * @returns {import("../parts/place.js").View}
 */
export function healthView({ api }) {
  const content = make("div", { class: "health", role: "status" });
  const problem = make("p", { class: "problem", role: "alert", hidden: true });
  async function check() {
    problem.hidden = true;
    if (content.childElementCount === 0) content.textContent = t("Checking …");
    try {
      content.replaceChildren(...renderDiagnosis(await fetchDiagnosis(api)));
    } catch (error) {
      content.replaceChildren();
      problem.textContent = problemText(error);
      problem.hidden = false;
    }
  }
  const buttons = make("div", { class: "buttons" }, action(t("Check again"), check));
  return { element: make("section", { class: "card" }, content, problem, buttons), show: check };
}

/**
 * Runs the checks of the engine, which takes up to a few seconds.
 *
 * @param {EngineApi} api
 * @returns {Promise<Diagnosis>}
 */
export async function fetchDiagnosis(api) {
  const response = await fetch("api/diagnosis", {
    headers: api.token === "" ? {} : { authorization: `Bearer ${api.token}` },
  });
  if (response.status === 401 || response.status === 403) throw new Error(needsToken());
  const { result, error } = await response.json();
  if (error) throw new ApiError(error.message || String(error), error.code || -1);
  return result;
}

/** @param {Diagnosis} diagnosis */
function renderDiagnosis({ rows, streams }) {
  return [rowsOf(rows), ...streams.map(streamOf)];
}

/**
 * Creates the list of findings.
 *
 * @param {readonly Row[]} rows
 */
export function rowsOf(rows) {
  return make("ul", { class: "health-rows" }, ...rows.map(rowOf));
}

/** @param {Row} row */
function rowOf({ name, level, text, advice }) {
  return make(
    "li",
    { class: `is-${level}` },
    make("span", { class: "health-sign", role: "img", title: LEVELS[level], "aria-label": LEVELS[level] }),
    make("strong", {}, name),
    make("span", { class: "health-text" }, text, advice === null ? undefined : make("small", {}, advice)),
  );
}

/** @param {Stream} stream */
function streamOf({ name, players, peers }) {
  const waitTexts = new Set(players.flatMap(({ buffering }) => (buffering ? [buffering.text] : [])));
  const sorted = [...peers].sort((a, b) => b.bytes_per_second_down - a.bytes_per_second_down);
  const rest = sorted.length - MAX_SHOWN_PEERS;
  return make(
    "section",
    { class: "health-stream" },
    make("h2", {}, make("bdi", {}, name)),
    ...[...waitTexts].map((text) => make("p", { class: "health-waits" }, text)),
    make("ul", { class: "health-peers" }, ...sorted.slice(0, MAX_SHOWN_PEERS).map(peerOf)),
    rest > 0 ? make("p", { class: "hint" }, t("and {number} more peers", { number: rest })) : undefined,
  );
}

/** @param {Peer} peer */
function peerOf({ address, client, bytes_per_second_down: rate, slow }) {
  return make(
    "li",
    {},
    make("span", { class: "health-rate" }, `${bytesText(rate)}/s`),
    make("bdi", { class: "health-peer", title: address }, client || address),
    slow === null ? undefined : make("small", {}, slow),
  );
}
