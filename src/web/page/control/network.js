// @ts-check
import { action, make } from "../parts/dom.js";
import { t } from "../parts/text.js";
import { fetchDiagnosis, rowsOf } from "./health.js";
import { VerdictCard } from "./verdict.js";

/** @typedef {import("./health.js").Row} Row */

/**
 * The findings about the network by what the user asks, and the settings that change them.
 *
 * @type {readonly { title: string, names: readonly string[], settings: readonly string[], none: string }[]}
 */
const PARTS = [
  {
    title: t("Reachability"),
    names: ["Port"],
    settings: ["p2p-port", "p2p-host"],
    none: "",
  },
  {
    title: t("Router (NAT)"),
    names: ["Router"],
    settings: ["port-mapping"],
    none: "",
  },
  {
    title: t("Finding peers"),
    names: ["Peers", "DHT", "Local peers", "Names"],
    settings: ["dht", "lsd", "trackers"],
    none: "",
  },
  {
    title: t("VPN and proxy"),
    names: ["Interface", "Visible address", "Proxy", "Proxy, UDP"],
    settings: ["bind", "proxy", "proxy-mode"],
    none: t("Peers are contacted directly: neither a VPN interface nor a proxy is set."),
  },
];

const VERDICTS = {
  ok: t("Other peers can connect to this engine"),
  note: t("Playback works; incoming connections are not confirmed"),
  warn: t("The network limits this engine"),
  fail: t("The engine cannot use the network as it is set"),
};

/**
 * The page Network: one verdict with the next step, and what is known about reachability, NAT, peers, VPNs and proxies.
 *
 * @param {import("../parts/live-data.js").LiveContext} context
 * @returns {import("../parts/place.js").View}
 */
export function networkView({ api }) {
  const verdict = new VerdictCard();
  const parts = make("div", { class: "page" });

  async function check() {
    verdict.check();
    const { rows } = await fetchDiagnosis(api);
    showVerdict(rows.filter(({ name }) => PARTS.some(({ names }) => names.includes(name))));
    parts.replaceChildren(
      ...PARTS.map(({ title, names, settings, none }) => {
        const own = rows.filter(({ name }) => names.includes(name));
        return make(
          "section",
          { class: "card health" },
          make("h2", {}, title),
          own.length > 0 ? rowsOf(own) : make("p", { class: "soft" }, none),
          make(
            "p",
            { class: "hint" },
            ...settings.flatMap((name) => [
              make("a", { href: `#/control/settings/${name}` }, make("code", {}, `--${name}`)),
              " ",
            ]),
          ),
        );
      }),
    );
  }

  /** @param {readonly Row[]} rows */
  function showVerdict(rows) {
    const worst = ["fail", "warn"].map((level) => rows.find((row) => row.level === level)).find(Boolean);
    const row = worst || rows.find(({ name }) => name === "Port");
    const level = row === undefined ? "note" : row.level;
    const withAdvice = row?.advice ? row : rows.find(({ advice }) => advice !== null);
    verdict.show(
      level,
      VERDICTS[level],
      row && make("p", {}, row.text),
      level !== "ok" && withAdvice
        ? make("p", {}, make("strong", {}, t("Next step:")), ` ${withAdvice.advice}`)
        : undefined,
      make("div", { class: "buttons" }, action(t("Check again"), check)),
    );
  }

  return { element: make("div", { class: "page" }, verdict.element, parts), show: check };
}
