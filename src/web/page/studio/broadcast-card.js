// @ts-check
import { confirmFirst } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { bytesText } from "../parts/figures.js";
import { STATES } from "./contract.js";
import { openShareDialog } from "./share-dialog.js";

/** @typedef {import("./contract.js").Broadcast} Broadcast */

/** One broadcast: its state, its figures, and what the user can do with it. */
export class BroadcastCard {
  /**
   * @param {import("../parts/api.js").EngineApi} api
   * @param {() => Promise<void>} changed
   */
  constructor(api, changed) {
    this.title = make("bdi", {});
    this.state = make("span", { class: "state" });
    this.remark = make("p", { class: "hint" });
    this.figures = make("dl", { class: "figures" });
    this.publish = make("div", { class: "publish", hidden: true });
    this.share = action("Link, QR and embed", () => openShareDialog(this.broadcast));
    this.stop = action(
      "Stop",
      () =>
        confirmFirst(
          "Stop this broadcast?",
          "Viewers lose the stream. If you start it again with the same name, they can continue with the same link.",
          "Stop broadcasting",
          async () => {
            await api.call("broadcast_stop", { name: this.broadcast.name });
            await changed();
          },
        ),
      "danger",
    );
    this.stop.hidden = !api.isLocal;
    /** @type {any} the latest figures, set by the first `update` */
    this.broadcast = undefined;
    this.element = make(
      "article",
      { class: "card broadcast" },
      make("div", { class: "row spread" }, make("h2", {}, this.title), this.state),
      this.remark,
      this.figures,
      this.publish,
      make("div", { class: "buttons" }, this.share, this.stop),
    );
  }

  /** @param {Broadcast} broadcast */
  update(broadcast) {
    this.broadcast = broadcast;
    const [text = "", level = ""] = STATES[broadcast.status];
    this.title.textContent = broadcast.title;
    this.state.textContent = text;
    this.state.className = `state is-${level}`;
    this.remark.textContent = broadcast.remark;
    this.share.hidden = broadcast.link === null;
    const { bitrate, speed_up: speed, uploaded, peers, children } = broadcast;
    this.figures.replaceChildren(
      figure("Peers", String(peers)),
      figure("Supplied directly", String(children)),
      figure("Bit rate", bitrate === null ? "–" : `${(bitrate / 1e6).toFixed(2)} Mbit/s`),
      figure("Upload", `${bytesText(speed)}/s`),
      figure("Uploaded", bytesText(uploaded)),
    );
    this.showPublishing(broadcast);
  }

  /** @param {Broadcast} broadcast */
  showPublishing({ publish_urls: urls, stream_key: key }) {
    const known = `${urls.join()} ${key}`;
    if (this.publish.dataset.known === known) return;
    this.publish.dataset.known = known;
    this.publish.hidden = urls.length === 0;
    this.publish.replaceChildren(
      make("h3", {}, "In OBS, choose Settings → Stream → Custom"),
      ...urls.map((url) => labelled("Server", url)),
      labelled("Stream key", key === null ? "Shown only on the engine's computer" : key),
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
function labelled(name, text) {
  return make("p", {}, make("span", { class: "soft" }, `${name}: `), make("code", {}, text));
}
