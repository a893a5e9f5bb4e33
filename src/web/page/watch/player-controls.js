// @ts-check
import { icon, options } from "../parts/dom.js";
import { clockText } from "../parts/figures.js";
import { t } from "../parts/text.js";
import { showToast } from "../parts/toast.js";

/** The controls disappear after this time without a movement, while the video plays. */
const HIDE_MS = 3_500;
/** Minutes of the sleep timer. */
const SLEEP_MINUTES = [15, 30, 60, 90, 120];

/**
 * @typedef {import("./view.js").Elements} Elements
 * @typedef {{ stepChannel: (step: 1 | -1) => void, playNextPart: () => void, stop: () => void }} PlayerActions
 */

/** The controls over the video: they disappear while it plays, and fill the window in the theatre. */
export class PlayerControls {
  #page;
  #actions;
  #hideTimer = 0;
  #sleepTimer = 0;
  /** Whether the theatre was open before the full screen. */
  #wasTheatre = false;

  /**
   * @param {Elements} page
   * @param {PlayerActions} actions
   */
  constructor(page, actions) {
    this.#page = page;
    this.#actions = actions;
    this.#drawIcons();
    this.#connectVideo();
    this.#connectButtons();
    this.#connectSleep();
    this.#connectScreens();
    for (const type of ["pointermove", "pointerdown", "focusin", "keydown"])
      page.stage.addEventListener(type, () => this.wake());
    window.addEventListener("popstate", () => this.isTheatre && this.#closeTheatre());
    document.addEventListener("fullscreenchange", () => {
      const isFull = document.fullscreenElement === page.stage;
      page.fullscreen.replaceChildren(icon(isFull ? "shrink" : "fullscreen"));
      if (!isFull && this.isTheatre && !this.#wasTheatre) this.leaveTheatre();
    });
  }

  get isTheatre() {
    return this.#page.stage.classList.contains("theatre");
  }

  get isFile() {
    return this.#page.stage.dataset.kind !== "live";
  }

  /** Shows the controls for a while. */
  wake() {
    const { stage, video, overlay } = this.#page;
    stage.classList.remove("idle");
    clearTimeout(this.#hideTimer);
    this.#hideTimer = window.setTimeout(() => {
      const focused = document.activeElement;
      const isChoosing =
        focused instanceof HTMLSelectElement || (!this.isTheatre && overlay.contains(focused));
      if (!video.paused && !isChoosing) this.rest();
    }, HIDE_MS);
  }

  /** Hides the controls. */
  rest() {
    const { stage, screen, overlay } = this.#page;
    stage.classList.add("idle");
    if (overlay.contains(document.activeElement)) screen.focus();
  }

  /** Fills the window with the player. */
  enterTheatre() {
    if (this.isTheatre) return;
    const { stage, leaveTheatre, screen, theatre } = this.#page;
    stage.classList.add("theatre");
    document.documentElement.classList.add("in-theatre");
    leaveTheatre.hidden = false;
    theatre.hidden = true;
    // The back button of the browser closes the theatre instead of leaving the page.
    history.pushState({ isTheatre: true }, "");
    screen.focus();
    this.wake();
  }

  /** Leaves the full screen and the theatre. */
  leaveTheatre() {
    if (document.fullscreenElement) document.exitFullscreen();
    if (!this.isTheatre) return;
    this.#closeTheatre();
    if (history.state?.isTheatre) history.back();
  }

  #closeTheatre() {
    const { stage, leaveTheatre, theatre } = this.#page;
    stage.classList.remove("theatre", "idle");
    document.documentElement.classList.remove("in-theatre");
    leaveTheatre.hidden = true;
    theatre.hidden = false;
    stage.scrollIntoView({ block: "nearest" });
  }

  toggleFullscreen() {
    const { stage, video } = this.#page;
    if (document.fullscreenElement) {
      document.exitFullscreen();
      return;
    }
    this.#wasTheatre = this.isTheatre;
    // Phones of Apple show only a video on the full screen.
    if (!stage.requestFullscreen) /** @type {any} */ (video).webkitEnterFullscreen?.();
    else
      stage.requestFullscreen().then(
        () => this.enterTheatre(),
        () => this.enterTheatre(),
      );
  }

  togglePlay() {
    const { video } = this.#page;
    if (video.paused) video.play().catch(() => {});
    else video.pause();
  }

  toggleSound() {
    const { video } = this.#page;
    video.muted = !video.muted;
  }

  toggleStats() {
    const { stage, showStats } = this.#page;
    const isShown = stage.classList.toggle("stats");
    showStats.setAttribute("aria-pressed", String(isShown));
  }

  /** @param {number} change between -1 and 1 */
  changeVolume(change) {
    const { video } = this.#page;
    video.muted = false;
    video.volume = Math.min(1, Math.max(0, video.volume + change));
  }

  /**
   * Seeks in a file, or in the stored part of a live stream.
   *
   * @param {number} seconds
   */
  skip(seconds) {
    const { video, liveBack, liveWindow } = this.#page;
    if (this.isFile) {
      video.currentTime = Math.max(0, Math.min(video.currentTime + seconds, video.duration || 0));
    } else if (!liveWindow.hidden) {
      liveBack.value = String(Number(liveBack.value) + seconds);
      liveBack.dispatchEvent(new Event("input"));
    }
  }

  /**
   * Shows the buttons that the content has.
   *
   * @param {{ isChannel: boolean, hasNextPart: boolean }} content
   */
  showContent({ isChannel, hasNextPart }) {
    const { previousChannel, nextChannel, nextPart } = this.#page;
    previousChannel.hidden = !isChannel;
    nextChannel.hidden = !isChannel;
    nextPart.hidden = !hasNextPart;
  }

  #drawIcons() {
    const page = this.#page;
    const icons = /** @type {const} */ ([
      [page.leaveTheatre, "back"],
      [page.previousChannel, "previous"],
      [page.nextChannel, "next"],
      [page.playPause, "play"],
      [page.nextPart, "skip"],
      [page.mute, "sound"],
      [page.showStats, "info"],
      [page.remotePlayback, "cast"],
      [page.pictureInPicture, "pip"],
      [page.theatre, "theatre"],
      [page.fullscreen, "fullscreen"],
    ]);
    for (const [button, name] of icons) button.replaceChildren(icon(name));
  }

  #connectVideo() {
    const { video, playPause, mute, volume, seek, seekRow, seekAt, seekLength, stage } = this.#page;
    let isSeeking = false;
    const showPlay = () => {
      playPause.replaceChildren(icon(video.paused ? "play" : "pause"));
      stage.classList.toggle("paused", video.paused);
      this.wake();
    };
    for (const type of ["play", "pause", "ended", "emptied"]) video.addEventListener(type, showPlay);
    video.addEventListener("volumechange", () => {
      mute.replaceChildren(icon(video.muted || video.volume === 0 ? "muted" : "sound"));
      volume.value = video.muted ? "0" : String(video.volume);
    });
    const showTime = () => {
      const isShown = this.isFile && Number.isFinite(video.duration) && video.duration > 0;
      seekRow.hidden = !isShown;
      if (!isShown || isSeeking) return;
      seek.max = String(Math.floor(video.duration));
      seek.value = String(Math.floor(video.currentTime));
      seekAt.textContent = clockText(video.currentTime);
      seekLength.textContent = clockText(video.duration);
      seek.setAttribute(
        "aria-valuetext",
        t("{at} of {length}", { at: clockText(video.currentTime), length: clockText(video.duration) }),
      );
    };
    for (const type of ["timeupdate", "durationchange", "emptied"]) video.addEventListener(type, showTime);
    seek.addEventListener("input", () => {
      isSeeking = true;
      seekAt.textContent = clockText(Number(seek.value));
    });
    seek.addEventListener("change", () => {
      isSeeking = false;
      video.currentTime = Number(seek.value);
    });
    volume.addEventListener("input", () => {
      video.muted = false;
      video.volume = Number(volume.value);
    });
  }

  #connectButtons() {
    const page = this.#page;
    page.playPause.addEventListener("click", () => this.togglePlay());
    page.mute.addEventListener("click", () => this.toggleSound());
    page.showStats.addEventListener("click", () => this.toggleStats());
    page.theatre.addEventListener("click", () => this.enterTheatre());
    page.leaveTheatre.addEventListener("click", () => this.leaveTheatre());
    page.fullscreen.addEventListener("click", () => this.toggleFullscreen());
    page.previousChannel.addEventListener("click", () => this.#actions.stepChannel(-1));
    page.nextChannel.addEventListener("click", () => this.#actions.stepChannel(1));
    page.nextPart.addEventListener("click", () => this.#actions.playNextPart());
    page.video.addEventListener("click", () => {
      // The first touch shows the controls.
      if (page.stage.classList.contains("idle")) this.wake();
      else this.togglePlay();
    });
    page.video.addEventListener("dblclick", () => this.toggleFullscreen());
    // After a click with the mouse, the keys belong to the player again and not to the button.
    page.overlay.addEventListener("click", (event) => {
      const isButton = event.target instanceof Element && event.target.closest("button") !== null;
      if (isButton && event.detail > 0) page.screen.focus({ preventScroll: true });
    });
  }

  #connectSleep() {
    const { sleep } = this.#page;
    const choices = SLEEP_MINUTES.map(
      (minutes) => /** @type {const} */ ([String(minutes), t("{minutes} min", { minutes })]),
    );
    sleep.replaceChildren(...options([["", t("Off")], ...choices], ""));
    sleep.addEventListener("change", () => {
      clearTimeout(this.#sleepTimer);
      const minutes = Number(sleep.value);
      if (minutes === 0) return;
      showToast(t("Playback ends in {minutes} minutes", { minutes }));
      this.#sleepTimer = window.setTimeout(() => {
        sleep.value = "";
        this.#actions.stop();
        showToast(t("The sleep timer has ended playback"));
      }, minutes * 60_000);
    });
  }

  /** Connects what only some browsers have: picture in picture, and televisions that play instead of this page. */
  #connectScreens() {
    const { video, pictureInPicture, remotePlayback } = this.#page;
    pictureInPicture.hidden = !document.pictureInPictureEnabled;
    pictureInPicture.addEventListener("click", () => {
      const change = document.pictureInPictureElement
        ? document.exitPictureInPicture()
        : video.requestPictureInPicture();
      change.catch(() => showToast(t("The video cannot be shown in a small window before it plays")));
    });
    const remote = /** @type {any} */ (video).remote;
    remote
      ?.watchAvailability((/** @type {boolean} */ isAvailable) => {
        remotePlayback.hidden = !isAvailable;
      })
      // The browser cannot watch for devices all the time; its own dialog finds them.
      .catch(() => {});
    remotePlayback.addEventListener("click", () => remote.prompt().catch(() => {}));
  }
}
