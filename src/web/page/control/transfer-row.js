// @ts-check
import { problemText } from "../parts/api.js";
import { SpeedChart, svg } from "../parts/chart.js";
import { confirmFirst } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { bytesText, contentName } from "../parts/figures.js";
import { factsText, figure } from "../parts/rows.js";
import { t } from "../parts/text.js";
import { showToast } from "../parts/toast.js";
import { chooseFiles } from "./download-add.js";
import { askForLimits, limitsText } from "./limits.js";

/** @typedef {import("../parts/live-data.js").TransferFigures} TransferFigures */

const KINDS = {
  files: t("Files from peers"),
  live: t("Live from peers"),
  own: t("Own broadcast"),
  web: t("Web server"),
};
const ORIGINS = {
  tracker: t("trackers"),
  pex: t("other peers"),
  magnet: t("the link"),
  incoming: t("incoming"),
  dht: "DHT",
  lsd: t("local network"),
  web: t("web servers"),
  webrtc: "WebRTC",
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
  #limit = action(t("Limit…"), () => {
    if (this.#transfer) askForLimits(this.#api, this.#transfer.infohash, this.#transfer);
  });
  #keep = action(t("Keep…"), () => this.#chooseFiles());
  #stop = action(t("Stop"), () => this.#askToStop(), "danger");
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
    make("div", { class: "buttons" }, this.#limit, this.#keep, this.#stop),
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
    this.#title.textContent = contentName(name);
    const share =
      size > 0
        ? t("{percent} % of {size}", { percent: Math.floor((100 * held) / size), size: bytesText(size) })
        : bytesText(held);
    this.#summary.textContent = factsText([
      KINDS[kind],
      kind === "web" ? "" : t("{count} peers", { count: peers }),
      share,
      users === 0 ? t("no player, will be closed") : t("{count} users", { count: users }),
    ]);
    this.#speeds.textContent = `↓ ${bytesText(transfer.speed_down)}/s  ↑ ${bytesText(transfer.speed_up)}/s`;
    this.#stop.hidden = kind === "own";
    this.#limit.hidden = kind === "web";
    this.#keep.hidden = kind !== "files";
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
    const sources = Object.entries(origins).map(([origin, number]) =>
      t("{number} from {source}", {
        number,
        source: ORIGINS[/** @type {keyof typeof ORIGINS} */ (origin)] ?? origin,
      }),
    );
    this.#figures.replaceChildren(
      figure(t("Downloaded"), bytesText(downloaded)),
      figure(t("Uploaded"), bytesText(uploaded)),
      figure(t("Ratio"), downloaded > 0 ? (uploaded / downloaded).toFixed(2) : "–"),
      figure(t("Wasted"), bytesText(wasted)),
      figure(t("Held"), bytesText(held)),
      figure(t("Seeds"), String(seeds)),
      figure(t("Known addresses"), String(candidates)),
      figure(t("Peers by source"), sources.join(", ") || t("none")),
      figure(t("Limits"), limitsText(transfer)),
      figure(t("Infohash"), infohash),
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
      // The transfer has just ended, or the engine does not answer; the live data show both.
    }
  }

  async #chooseFiles() {
    try {
      if (this.#transfer) await chooseFiles(this.#api, { infohash: this.#transfer.infohash });
    } catch (error) {
      showToast(problemText(error));
    }
  }

  #askToStop() {
    const transfer = this.#transfer;
    if (transfer === undefined) return;
    confirmFirst(
      t("Stop this transfer?"),
      t("{name}: its players stop. What was downloaded stays in the cache.", { name: transfer.name }),
      t("Stop transfer"),
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
  return t("Piece map: {whole} of {parts} parts are complete", { whole, parts: map.length });
}
