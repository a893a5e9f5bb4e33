// @ts-check
import { problemText } from "../parts/api.js";
import { statusText } from "../parts/figures.js";
import { t } from "../parts/text.js";
import { showToast } from "../parts/toast.js";
import { SourceNotes } from "./channel-sources.js";
import { awaitManifest, contentOf, NO_SOUND, soundOf, startSession, stopSession } from "./engine.js";
import { LiveControls, showKind } from "./live.js";
import { PictureSubtitles, pictureTracksOf } from "./picture-subtitles.js";
import { attachPlayer } from "./player.js";
import { showsSubtitleFile } from "./subtitle-file.js";
import { TrackMenus } from "./tracks.js";
import { clearInfo, showFiles, showInfo, showProblem, showSilent, showWaiting } from "./view.js";

/** The sparkline shows two minutes: the state of the session arrives once a second. */
const SPARKLINE_VALUES = 120;
/** Shown while playback stalls, until the engine reports why. */
const WAITING = t("Waiting for data");

/**
 * @typedef {import("./engine.js").Session} Session
 * @typedef {{
 *   page: import("./view.js").Elements,
 *   live: import("../parts/live-data.js").LiveData,
 *   source: import("../parts/link.js").Link | Uint8Array,
 *   playerId: string,
 *   choice: import("./engine.js").Choice,
 *   onContent: (content: import("./engine.js").Content, session: Session, fileIndex: number) => void,
 *   subtitleLanguage: string | undefined,
 *   onChosen: import("./tracks.js").OnChosen,
 *   onLanguage: (fileIndex: number, language: string) => void,
 *   onUnplayable: (message: string, isFilm: boolean) => void,
 *   onFailed: (message: string) => void,
 *   startAt: (infohash: string, fileIndex: number) => Promise<number>,
 *   previousStopped: Promise<void> | undefined,
 * }} PlaybackOptions
 */

/** One playback, from the start of its session to its end. Choosing another file or container starts a new one. */
export class Playback {
  #options;
  #end = new AbortController();
  /** @type {Promise<Session> | undefined} */
  #session;
  /** @type {import("./player.js").Player | undefined} */
  #player;
  /** @type {number[]} */
  #speeds = [];
  #isPlaying = false;
  #isLive = false;
  /** @type {LiveControls | undefined} */
  #live;
  /** @type {TrackMenus | undefined} */
  #tracks;
  #sources;

  /** @param {PlaybackOptions} options */
  constructor(options) {
    this.#options = options;
    this.#sources = new SourceNotes(options.page.sourceNote);
  }

  /** Starts the session, waits for the swarm, and plays. Shows errors on the page. */
  async run() {
    const { page, source, playerId, choice, onContent, onUnplayable, previousStopped } = this.#options;
    const { signal } = this.#end;
    clearInfo(page);
    showKind(page, false);
    showWaiting(page, t("Starting"));
    try {
      await previousStopped;
      if (signal.aborted) return;
      this.#session = startSession(source, playerId, choice);
      const session = await this.#session;
      if (signal.aborted) return;
      this.#watch(session);
      const content = await contentOf(session.infohash, signal);
      const fileIndex = choice.fileIndex ?? content.order[0] ?? 0;
      showFiles(page, content.files, fileIndex);
      onContent(content, session, fileIndex);
      const { url, isFile } = await awaitManifest(session, signal);
      const hasTracks = session.is_live !== 1 && !isFile;
      const sound = hasTracks ? await soundOf(session.infohash, fileIndex, signal) : NO_SOUND;
      const pictureTracks = hasTracks ? await pictureTracksOf(session.infohash, fileIndex, signal) : [];
      showSilent(page, sound.silent);
      if (session.is_live === 1) this.#nameSilent(session.infohash, fileIndex);
      const isFilm = session.is_live !== 1;
      const atSeconds =
        choice.atSeconds ?? (isFilm ? await this.#options.startAt(session.infohash, fileIndex) : 0);
      page.video.addEventListener("playing", () => this.#played(), { signal });
      page.video.addEventListener("waiting", () => showWaiting(page, WAITING), { signal });
      const player = await attachPlayer(page.video, url, isFile, atSeconds, {
        onFailure: (kind, message) =>
          kind === "unplayable" ? onUnplayable(message, isFilm) : this.#fail(message),
        onTracks: () => this.#tracks?.update(),
        audioLanguage: sound.languages.length === 1 ? sound.languages[0] : undefined,
        // A file that the user opened remains when the same film continues in another language.
        subtitleLanguage: showsSubtitleFile(page.video) ? undefined : this.#options.subtitleLanguage,
      });
      if (signal.aborted) {
        player.destroy();
        return;
      }
      this.#player = player;
      const onLanguage = (/** @type {string} */ language) => this.#options.onLanguage(fileIndex, language);
      const { onChosen } = this.#options;
      const options = { chosen: choice.audioLanguage, opensFiles: hasTracks, signal, onChosen, onLanguage };
      const pictures = new PictureSubtitles(page, signal);
      this.#tracks = new TrackMenus(page, player, sound, pictures, { ...options, pictureTracks });
      this.#live = new LiveControls(page, session, player, signal);
    } catch (error) {
      if (!signal.aborted) this.#fail(problemText(error));
    }
  }

  /**
   * Names the sound of a stream that cannot be played. An error is not shown: the stream plays without this, and if it does not,
   * the player shows why.
   *
   * @param {string} infohash
   * @param {number} fileIndex
   */
  #nameSilent(infohash, fileIndex) {
    const { signal } = this.#end;
    soundOf(infohash, fileIndex, signal).then(
      ({ silent }) => {
        if (!signal.aborted) showSilent(this.#options.page, silent);
      },
      () => {},
    );
  }

  /**
   * Stops the playback. Resolves when the session has ended; a start with the same player and content before that would
   * share the session and be stopped, too.
   */
  async stop() {
    if (this.#end.signal.aborted) return;
    this.#end.abort();
    this.#player?.destroy();
    this.#sources.clear();
    showWaiting(this.#options.page, "");
    try {
      await this.#options.previousStopped;
      const session = await this.#session;
      if (session !== undefined) await stopSession(session);
    } catch {
      // The session never started, or the engine does not answer and ends it when it is idle.
    }
  }

  /**
   * Shows a subtitle file of the user beside the film. Shows errors on the page.
   *
   * @param {File} file
   */
  async openSubtitles(file) {
    const { page } = this.#options;
    showProblem(page, "");
    try {
      if (!this.#tracks) throw new Error(t("The film is still starting. Open the subtitles when it plays."));
      await this.#tracks.open(file);
    } catch (error) {
      if (this.#end.signal.aborted) return;
      showProblem(page, problemText(error));
      // The player may cover the page.
      showToast(problemText(error));
    }
  }

  /** The position at which another device continues, in seconds; 0 for a live stream, which continues at the live edge. */
  get atSeconds() {
    return this.#isLive ? 0 : this.#options.page.video.currentTime;
  }

  /**
   * Returns why the picture waits; empty if it does not.
   *
   * @param {import("./engine.js").SessionInfo} info
   */
  #waitingText({ status, peers, buffering }) {
    const { video } = this.#options.page;
    const reason = buffering && buffering.reason !== "player" ? buffering.text : undefined;
    if (!this.#isPlaying) return reason ?? statusText(status === "dl" ? "prebuf" : status, peers);
    const isStalled = !video.paused && !video.ended && video.readyState < HTMLMediaElement.HAVE_FUTURE_DATA;
    return isStalled ? (reason ?? WAITING) : "";
  }

  #played() {
    this.#isPlaying = true;
    showWaiting(this.#options.page, "");
  }

  /** @param {string} message */
  #fail(message) {
    this.#options.onFailed(message);
    this.stop();
  }

  /**
   * Shows the session's figures until the playback ends.
   *
   * @param {Session} session
   */
  #watch(session) {
    /** @param {import("./engine.js").SessionInfo | { ended: string }} event */
    const changed = (event) => {
      if ("ended" in event) this.#fail(t("The session has ended: {problem}", { problem: event.ended }));
      else this.#show(event);
    };
    const release = this.#options.live.follow(session.stat_url, changed);
    this.#end.signal.addEventListener("abort", release, { once: true });
  }

  /** @param {import("./engine.js").SessionInfo} info */
  #show(info) {
    const { page } = this.#options;
    this.#speeds = [...this.#speeds, info.speed_down].slice(-SPARKLINE_VALUES);
    showInfo(page, info, this.#speeds);
    this.#isLive = info.is_live === 1;
    showKind(page, this.#isLive);
    if (this.#isLive) this.#live?.update(info);
    this.#sources.update(info.channel);
    if (info.error_message) this.#fail(info.error_message);
    else showWaiting(page, this.#waitingText(info));
  }
}
