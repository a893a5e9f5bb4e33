// @ts-check
import { problemText } from "../parts/api.js";
import { SpeedChart, svg } from "../parts/chart.js";
import { confirmFirst } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { bytesText } from "../parts/figures.js";

/** @typedef {import("../parts/live-data.js").TransferFigures} TransferFigures */

const KINDS = { files: "Files from peers", live: "Live from peers", own: "Own broadcast", web: "Web server" };
const ORIGINS = {
  tracker: "trackers",
  pex: "other peers",
  magnet: "the link",
  incoming: "incoming",
  dht: "DHT",
  lsd: "local network",
  web: "web servers",
};
/** As many cells as a row of a wide screen has pixels to spare. */
const CELLS = 200;
/** Interval of the piece map while a transfer is unfolded. */
const MAP_MS = 2_000;

/** The row of a transfer; unfolded, it shows the piece map, the speeds of the last hour, and the costs. */
export class TransferRow {
  #api;
  #live;
  #title = make("bdi", { class: "row-title" });
  #summary = make("small", {});
  #speeds = make("span", { class: "row-speeds" });
  #figures = make("dl", { class: "figures" });
  #map = svg("svg", {
    class: "piece-map",
    viewBox: `0 0 ${CELLS} 10`,
    preserveAspectRatio: "none",
    role: "img",
  });
  #chart = new SpeedChart();
  #stop = action("Stop", () => this.#askToStop(), "danger");
  /** @type {TransferFigures | undefined} */
  #transfer;
  #shownMap = "";
  #mapAt = 0;
  element = make(
    "details",
    { class: "row-item transfer" },
    make("summary", {}, make("span", { class: "row-text" }, this.#title, this.#summary), this.#speeds),
    this.#map,
    this.#chart.element,
    this.#figures,
    make("div", { class: "buttons" }, this.#stop),
  );

  /**
   * @param {import("../parts/api.js").EngineApi} api
   * @param {import("../parts/live-data.js").LiveData} live
   */
  constructor(api, live) {
    this.#api = api;
    this.#live = live;
    this.element.addEventListener("toggle", () => this.#showDetails());
  }

  /** @param {TransferFigures} transfer */
  update(transfer) {
    this.#transfer = transfer;
    const { name, kind, peers, users, size, held } = transfer;
    this.#title.textContent = name;
    const share = size > 0 ? `${Math.floor((100 * held) / size)} % of ${bytesText(size)}` : bytesText(held);
    this.#summary.textContent = [
      KINDS[kind],
      kind === "web" ? "" : `${peers} ${peers === 1 ? "peer" : "peers"}`,
      share,
      users === 0 ? "no player, will be closed" : `${users} ${users === 1 ? "user" : "users"}`,
    ]
      .filter(Boolean)
      .join(" · ");
    this.#speeds.textContent = `↓ ${bytesText(transfer.speed_down)}/s  ↑ ${bytesText(transfer.speed_up)}/s`;
    this.#stop.hidden = kind === "own";
    this.#showDetails();
  }

  #showDetails() {
    const transfer = this.#transfer;
    if (!this.element.open || transfer === undefined) return;
    const { infohash, downloaded, uploaded, wasted, held, candidates, seeds, origins } = transfer;
    const speeds = (this.#live.get("speeds") ?? []).flatMap(([at, , , transfers]) => {
      const own = transfers[infohash];
      return own === undefined ? [] : [{ at, down: own[0], up: own[1] }];
    });
    this.#chart.update(speeds);
    const sources = Object.entries(origins).map(
      ([origin, count]) => `${count} from ${ORIGINS[/** @type {keyof typeof ORIGINS} */ (origin)] ?? origin}`,
    );
    this.#figures.replaceChildren(
      figure("Downloaded", bytesText(downloaded)),
      figure("Uploaded", bytesText(uploaded)),
      figure("Ratio", downloaded > 0 ? (uploaded / downloaded).toFixed(2) : "–"),
      figure("Wasted", bytesText(wasted)),
      figure("Held", bytesText(held)),
      figure("Seeds", String(seeds)),
      figure("Known addresses", String(candidates)),
      figure("Peers by source", sources.join(", ") || "none"),
      figure("Infohash", infohash),
    );
    if (transfer.kind === "files" && Date.now() - this.#mapAt > MAP_MS) this.#loadMap(infohash);
  }

  /** @param {string} infohash */
  async #loadMap(infohash) {
    this.#mapAt = Date.now();
    try {
      const map = await this.#api.call("get_piece_map", { infohash, cells: CELLS });
      if (map === this.#shownMap) return;
      this.#shownMap = map;
      this.#map.setAttribute("viewBox", `0 0 ${map.length || 1} 10`);
      this.#map.setAttribute("aria-label", mapText(map));
      this.#map.replaceChildren(
        ...[...map].map((digit, x) =>
          svg("rect", { x, y: 0, width: 1.02, height: 10, class: `held-${digit}` }),
        ),
      );
    } catch {
      // The transfer has just ended, or the page shows elsewhere that the engine does not answer.
    }
  }

  #askToStop() {
    const transfer = this.#transfer;
    if (transfer === undefined) return;
    confirmFirst(
      "Stop this transfer?",
      `${transfer.name}: its players stop. What was downloaded stays in the cache.`,
      "Stop transfer",
      async () => {
        try {
          await this.#api.call("transfer_stop", { infohash: transfer.infohash });
        } catch (error) {
          throw new Error(problemText(error));
        }
      },
    );
  }
}

/** @param {string} map */
function mapText(map) {
  const whole = [...map].filter((digit) => digit === "9").length;
  return `Piece map: ${whole} of ${map.length} parts are complete`;
}

/**
 * @param {string} name
 * @param {string} text
 */
function figure(name, text) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, text));
}
