// @ts-check
import { svg } from "../parts/chart.js";
import { confirmFirst } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { agoText, bytesText } from "../parts/figures.js";
import { figure } from "../parts/rows.js";
import { t } from "../parts/text.js";
import { copyLink } from "../parts/toast.js";
import { STATES } from "./contract.js";
import { Preview } from "./preview.js";
import { openRecordForm } from "./record-form.js";
import { openShareDialog } from "./share-dialog.js";
import { drawSwarm } from "./swarm-graph.js";

/** @typedef {import("./contract.js").Broadcast} Broadcast */

/** One broadcast: its state, its figures, and what the user can do with it. */
export class BroadcastCard {
  #api;
  #live;
  #title = make("bdi", {});
  #state = make("span", { class: "state" });
  #source = make("small", { class: "soft" });
  #remark = make("p", { class: "hint" });
  #figures = make("dl", { class: "figures" });
  #publish = make("div", { class: "publish", hidden: true });
  #graph = svg("svg", { class: "swarm", role: "img" });
  #swarm = make("details", { class: "swarm-fold" }, make("summary", {}, t("The swarm")), this.#graph);
  #share = action(
    t("Link, QR and embed"),
    () => this.#broadcast && openShareDialog(this.#broadcast, this.#api),
  );
  #record;
  #shownPublishing = "";
  /** @type {Broadcast | undefined} */
  #broadcast;
  preview = new Preview();

  /**
   * @param {import("../parts/api.js").EngineApi} api
   * @param {import("../parts/live-data.js").LiveData} live
   */
  constructor(api, live) {
    this.#api = api;
    this.#live = live;
    this.#record = action(t("Record…"), () => this.#broadcast && openRecordForm(api, this.#broadcast));
    const stop = action(t("Stop"), () => this.#askToStop(api), "danger");
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
      make("div", { class: "buttons" }, this.preview.button, this.#share, this.#record, stop),
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
    const since = startedAt === null ? "" : ` · ${t("started {ago}", { ago: agoText(startedAt) })}`;
    this.#source.textContent = `${source ?? t("Test pattern")}${since}`;
    this.#remark.textContent = remark;
    this.#share.hidden = link === null;
    this.#record.hidden = infohash === null;
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
      figure(t("Viewers connected"), String(peers)),
      figure(t("Supplied directly"), String(children)),
      figure(t("Bit rate"), bitrate === null ? "–" : `${(bitrate / 1e6).toFixed(2)} Mbit/s`),
      figure(t("Upload"), `${bytesText(speed)}/s`),
      figure(t("Saved by peers"), peers === 0 ? "–" : `${bytesText(saved)}/s${share}`),
      figure(t("Uploaded"), bytesText(uploaded)),
    );
  }

  /** @param {Broadcast} broadcast */
  #showPublishing({ publish_urls: urls, stream_key: key }) {
    const shown = `${urls.join()} ${key}`;
    if (this.#shownPublishing === shown) return;
    this.#shownPublishing = shown;
    this.#publish.hidden = urls.length === 0;
    const isSrt = urls.some((url) => url.startsWith("srt:"));
    const suffix = isSrt && key !== null ? `?passphrase=${encodeURIComponent(key)}` : "";
    this.#publish.replaceChildren(
      make("h3", {}, t("In OBS, choose Settings → Stream → Service: Custom")),
      ...urls.map((url) => copied(t("Server"), `${url}${suffix}`, t("Copy the server"))),
      ...publishingNote(isSrt, key),
    );
  }

  /** @param {import("../parts/api.js").EngineApi} api */
  #askToStop(api) {
    const broadcast = this.#broadcast;
    if (broadcast === undefined) return;
    confirmFirst(
      t("Stop {title}?", { title: broadcast.title }),
      t(
        "Viewers lose the stream. If you start it again with the same name, they can continue with the same link.",
      ),
      t("Stop broadcasting"),
      async () => {
        this.preview.stop();
        await api.call("broadcast_stop", { name: broadcast.name });
      },
    );
  }
}

/**
 * @param {boolean} isSrt
 * @param {string | null} key
 */
function publishingNote(isSrt, key) {
  if (key === null)
    return [make("p", { class: "soft" }, t("The stream key is shown only on the engine's computer."))];
  if (isSrt) return [make("p", { class: "soft" }, t("Leave the stream key empty."))];
  return [copied(t("Stream key"), key, t("Copy the stream key"))];
}

/**
 * @param {string} name
 * @param {string} text
 * @param {string} label label of the button that copies the text
 */
function copied(name, text, label) {
  const copy = action(t("Copy"), () => copyLink(text));
  copy.setAttribute("aria-label", label);
  return make(
    "p",
    { class: "copied-text" },
    make("span", { class: "soft" }, name),
    make("code", {}, text),
    copy,
  );
}
