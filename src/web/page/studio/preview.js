// @ts-check
import { problemText } from "../parts/api.js";
import { action, make } from "../parts/dom.js";
import { ownPath } from "../parts/place.js";
import { t } from "../parts/text.js";

/** The preview waits as long as a player. */
const MANIFEST_TIMEOUT_MS = 60_000;

/** Shows what viewers of a broadcast see, without sound, as long as the user wants it. */
export class Preview {
  #video = make("video", {
    muted: true,
    playsinline: true,
    controls: true,
    hidden: true,
    "aria-label": t("Preview"),
  });
  #problem = make("p", { class: "problem", role: "alert", hidden: true });
  #button = action(t("Preview"), () => (this.#stop === undefined ? this.#start() : this.stop()));
  element = make("div", { class: "preview" }, this.#video, this.#problem);
  /** Ends the preview; undefined if there is none. @type {(() => void) | undefined} */
  #stop;
  #infohash = "";

  /** The button that opens and closes it. */
  get button() {
    return this.#button;
  }

  /** @param {string | null} infohash */
  show(infohash) {
    this.#button.hidden = infohash === null;
    this.#infohash = infohash ?? "";
  }

  /** Ends the session of the preview, if there is one. */
  stop() {
    this.#stop?.();
    this.#stop = undefined;
    this.#video.hidden = true;
    this.#button.textContent = t("Preview");
  }

  async #start() {
    this.#problem.hidden = true;
    try {
      const query = new URLSearchParams({
        infohash: this.#infohash,
        format: "json",
        pid: `studio-${Date.now()}`,
      });
      const { response, error } = await (await fetch(`ace/manifest.m3u8?${query}`)).json();
      if (error) throw new Error(typeof error === "string" ? error : error.message);
      const end = () => void fetch(`${ownPath(response.command_url)}?method=stop`, { keepalive: true });
      const { default: Hls } = await import("hls.js");
      this.#video.hidden = false;
      this.#video.muted = true;
      this.#button.textContent = t("Close the preview");
      const url = ownPath(response.playback_url);
      if (!Hls.isSupported()) {
        this.#video.src = url;
        this.#stop = () => {
          this.#video.removeAttribute("src");
          this.#video.load();
          end();
        };
      } else {
        const wait = { maxTimeToFirstByteMs: MANIFEST_TIMEOUT_MS, maxLoadTimeMs: MANIFEST_TIMEOUT_MS };
        const retry = { timeoutRetry: null, errorRetry: null };
        const hls = new Hls({
          lowLatencyMode: true,
          enableWorker: false,
          manifestLoadPolicy: { default: { ...wait, ...retry } },
        });
        hls.loadSource(url);
        hls.attachMedia(this.#video);
        hls.on(Hls.Events.ERROR, (_, data) => {
          if (data.fatal)
            this.#failed(t("The preview cannot be played ({reason}).", { reason: data.details }));
        });
        this.#stop = () => {
          hls.destroy();
          end();
        };
      }
      await this.#video.play().catch(() => {}); // The user can press play.
    } catch (error) {
      this.#failed(problemText(error));
    }
  }

  /** @param {string} text */
  #failed(text) {
    this.stop();
    this.#problem.textContent = text;
    this.#problem.hidden = false;
  }
}
