// @ts-check
import { svg } from "../parts/chart.js";
import { confirmFirst } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { agoText, bytesText } from "../parts/figures.js";
import { copyLink } from "../parts/toast.js";
import { STATES } from "./contract.js";
import { Preview } from "./preview.js";
import { openShareDialog } from "./share-dialog.js";
import { drawSwarm } from "./swarm-graph.js";

/** @typedef {import("./contract.js").Broadcast} Broadcast */

/** One broadcast: its state, its figures, and what the user can do with it. */
export class BroadcastCard {
  #live;
  #title = make("bdi", {});
  #state = make("span", { class: "state" });
  #source = make("small", { class: "soft" });
  #remark = make("p", { class: "hint" });
  #figures = make("dl", { class: "figures" });
  #publish = make("div", { class: "publish", hidden: true });
  #graph = svg("svg", { class: "swarm", role: "img" });
  #swarm = make("details", { class: "swarm-fold" }, make("summary", {}, "The swarm"), this.#graph);
  #share = action("Link, QR and embed", () => this.#broadcast && openShareDialog(this.#broadcast));
  #shownPublishing = "";
  /** @type {Broadcast | undefined} */
  #broadcast;
  preview = new Preview();

  /**
   * @param {import("../parts/api.js").EngineApi} api
   * @param {import("../parts/live-data.js").LiveData} live
   */
  constructor(api, live) {
    this.#live = live;
    const stop = action("Stop", () => this.#askToStop(api), "danger");
    stop.hidden = !api.isLocal;
    this.element = make(
      "article",
      { class: "card broadcast" },
      make("div", { class: "row spread" }, make("h2", {}, this.#title), this.#state),
      this.#source,
      this.#remark,
      this.preview.element,
      this.#figures,
      this.#publish,
      this.#swarm,
      make("div", { class: "buttons" }, this.preview.button, this.#share, stop),
    );
  }

  /** @param {Broadcast} broadcast */
  update(broadcast) {
    this.#broadcast = broadcast;
    const { title, status, source, started_at: startedAt, remark, link, infohash } = broadcast;
    const [text = "", level = ""] = STATES[status];
    this.#title.textContent = title;
    this.#state.textContent = text;
    this.#state.className = `state is-${level}${status === "good" ? " is-on-air" : ""}`;
    const since = startedAt === null ? "" : ` · started ${agoText(startedAt)}`;
    this.#source.textContent = `${source ?? "Test pattern"}${since}`;
    this.#remark.textContent = remark;
    this.#share.hidden = link === null;
    this.preview.show(status === "good" ? infohash : null);
    const transfer = this.#live.get("transfers")?.find((each) => each.infohash === infohash);
    const nodes = transfer?.nodes ?? [];
    this.#swarm.hidden = nodes.length === 0;
    if (nodes.length > 0) drawSwarm(this.#graph, nodes);
    this.#showFigures(broadcast);
    this.#showPublishing(broadcast);
  }

  /** @param {Broadcast} broadcast */
  #showFigures({ bitrate, speed_up: speed, uploaded, peers, children }) {
    const wanted = (peers * (bitrate ?? 0)) / 8;
    const saved = Math.max(0, wanted - speed);
    const share = wanted > 0 ? ` (${Math.round((100 * saved) / wanted)} %)` : "";
    this.#figures.replaceChildren(
      figure("Viewers connected", String(peers)),
      figure("Supplied directly", String(children)),
      figure("Bit rate", bitrate === null ? "–" : `${(bitrate / 1e6).toFixed(2)} Mbit/s`),
      figure("Upload", `${bytesText(speed)}/s`),
      figure("Saved by peers", peers === 0 ? "–" : `${bytesText(saved)}/s${share}`),
      figure("Uploaded", bytesText(uploaded)),
    );
  }

  /** @param {Broadcast} broadcast */
  #showPublishing({ publish_urls: urls, stream_key: key }) {
    const shown = `${urls.join()} ${key}`;
    if (this.#shownPublishing === shown) return;
    this.#shownPublishing = shown;
    this.#publish.hidden = urls.length === 0;
    this.#publish.replaceChildren(
      make("h3", {}, "In OBS, choose Settings → Stream → Service: Custom"),
      ...urls.map((url) => copied("Server", url)),
      key === null
        ? make("p", { class: "soft" }, "The stream key is shown only on the engine's computer.")
        : copied("Stream key", key),
    );
  }

  /** @param {import("../parts/api.js").EngineApi} api */
  #askToStop(api) {
    const broadcast = this.#broadcast;
    if (broadcast === undefined) return;
    confirmFirst(
      `Stop ${broadcast.title}?`,
      "Viewers lose the stream. If you start it again with the same name, they can continue with the same link.",
      "Stop broadcasting",
      async () => {
        this.preview.stop();
        await api.call("broadcast_stop", { name: broadcast.name });
      },
    );
  }
}

/**
 * @param {string} name
 * @param {string} text
 */
function figure(name, text) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, text));
}

/**
 * @param {string} name
 * @param {string} text
 */
function copied(name, text) {
  const copy = action("Copy", () => copyLink(text));
  copy.setAttribute("aria-label", `Copy the ${name.toLowerCase()}`);
  return make(
    "p",
    { class: "copied-text" },
    make("span", { class: "soft" }, name),
    make("code", {}, text),
    copy,
  );
}
