// @ts-check

import { languageName } from "../parts/figures.js";
import { LIVE_OPTIONS, limitBackBuffer, MANIFEST_TIMEOUT_RETRY } from "../parts/live-hls.js";
import { ownPath } from "../parts/place.js";
import { t } from "../parts/text.js";
import { livePictures } from "./live-pictures.js";
import { raiseQuality } from "./live-quality.js";
import {
  attachNative,
  describeText,
  nativeTracks,
  seekTo,
  startPlaying,
  textTracks,
} from "./native-player.js";
import { qualitiesOf } from "./quality-menu.js";
import { isFileTrack } from "./subtitle-file.js";

/** A manifest waits for the swarm, a segment for its data, which may be slow. */
const MANIFEST_TIMEOUT_MS = 180_000;
const SEGMENT_TIMEOUT_MS = 60_000;
const TIMEOUT_RETRY = { maxNumRetry: 2, retryDelayMs: 500, maxRetryDelayMs: 2_000 };
/** The delay before an interrupted live stream is loaded again. */
const RETRY_MS = 2_000;
/** A segment of subtitles is listed when it ends, and loaded within another one. */
const SUBTITLE_SEGMENTS = 2.5;
/** If so many decoder errors follow a reset within this time, the content is unplayable. Bad reception damages a live stream again and again. */
const RECOVERY_MS = 60_000;
const MAX_RESETS = { film: 1, live: 8 };

/**
 * @typedef {import("./native-player.js").Track} Track
 * @typedef {import("./native-player.js").PlayerHandlers} PlayerHandlers
 * @typedef {import("./native-player.js").Player} Player
 */

/**
 * Plays a URL in `video` from `atSeconds`. For HLS it uses hls.js if the browser has Media Source Extensions, else the browser's own
 * HLS player (Safari on phones). The browser plays a file, such as music, by itself.
 *
 * @param {HTMLVideoElement} video
 * @param {string} url
 * @param {boolean} isFile
 * @param {number} atSeconds
 * @param {PlayerHandlers} handlers
 * @returns {Promise<Player>}
 */
export async function attachPlayer(video, url, isFile, atSeconds, handlers) {
  if (isFile) return attachNative(video, url, atSeconds, handlers);
  const { default: Hls } = await import("hls.js");
  if (Hls.isSupported()) return attachHls(Hls, video, url, atSeconds, handlers);
  if (video.canPlayType("application/vnd.apple.mpegurl") !== "")
    return attachNative(video, url, atSeconds, handlers);
  handlers.onFailure(
    "network",
    t(
      "This browser cannot play HLS (it has no Media Source Extensions). Use another browser, or copy a link into a player.",
    ),
  );
  return {
    destroy() {},
    behindLive: () => undefined,
    seekBehind: () => false,
    reload() {},
    ...nativeTracks(video),
  };
}

/**
 * @param {typeof import("hls.js").default} Hls
 * @param {HTMLVideoElement} video
 * @param {string} url
 * @param {number} atSeconds
 * @param {PlayerHandlers} handlers
 * @returns {Player}
 */
function attachHls(Hls, video, url, atSeconds, handlers) {
  const loadPolicy = (/** @type {number} */ timeoutMs, timeoutRetry = TIMEOUT_RETRY) => ({
    default: {
      maxTimeToFirstByteMs: timeoutMs,
      maxLoadTimeMs: timeoutMs,
      timeoutRetry,
      errorRetry: { maxNumRetry: 3, retryDelayMs: 1000, maxRetryDelayMs: 4000 },
    },
  });
  const hls = new Hls({
    workerPath: "app/hls.worker.js",
    // Manifests name the host as the engine knows it, which can be another one behind a reverse proxy.
    xhrSetup: (xhr, url) => xhr.open("GET", ownPath(url), true),
    timelineController: captionsInParts(Hls),
    maxBufferLength: 30,
    ...LIVE_OPTIONS,
    // -1: hls.js starts a live stream at its live edge.
    startPosition: atSeconds > 0 ? atSeconds : -1,
    // Sound that begins up to this many frames of AAC after the picture is moved to it; 1, the default, moves it by up to 21 ms.
    maxAudioFramesDrift: 0.5,
    manifestLoadPolicy: loadPolicy(MANIFEST_TIMEOUT_MS),
    playlistLoadPolicy: loadPolicy(MANIFEST_TIMEOUT_MS, MANIFEST_TIMEOUT_RETRY),
    fragLoadPolicy: loadPolicy(SEGMENT_TIMEOUT_MS),
    ...(handlers.subtitleLanguage && { subtitlePreference: { lang: handlers.subtitleLanguage } }),
  });
  /** When the decoder was reset. @type {number[]} */
  let resets = [];
  let isLive = false;
  let retryTimer = 0;
  let loads = 0;
  const load = () => {
    clearTimeout(retryTimer);
    const path = ownPath(url);
    // A different URL makes hls.js discard the state of the previous load.
    hls.loadSource(loads++ === 0 ? path : `${path}${path.includes("?") ? "&" : "?"}again=${loads}`);
  };
  hls.on(Hls.Events.LEVEL_LOADED, (_event, { details }) => {
    isLive = details.live;
  });
  hls.on(Hls.Events.ERROR, (_event, data) => {
    if (!data.fatal) return;
    if (data.type === Hls.ErrorTypes.NETWORK_ERROR && isLive) {
      retryTimer = window.setTimeout(load, RETRY_MS);
      return;
    }
    if (data.type === Hls.ErrorTypes.NETWORK_ERROR) {
      const reason = String(data.response?.code ?? t("no response"));
      handlers.onFailure("network", t("The stream was interrupted ({reason})", { reason }));
      return;
    }
    // A reset recovers a decoder from a single bad frame. If the error returns at once, another reset does not help.
    const isCodec = /codec|incompatible/i.test(data.details);
    const now = performance.now();
    resets = resets.filter((at) => now - at < RECOVERY_MS);
    const mayRecover = resets.length < (isLive ? MAX_RESETS.live : MAX_RESETS.film);
    if (!isCodec && data.type === Hls.ErrorTypes.MEDIA_ERROR && mayRecover) {
      resets.push(now);
      // A live stream continues at its edge: what follows the position may be gone.
      if (isLive) {
        load();
        return;
      }
      const { paused } = video;
      hls.recoverMediaError();
      // The reset pauses the video.
      if (!paused) startPlaying(video);
      return;
    }
    handlers.onFailure("unplayable", data.error?.message ?? data.details);
  });
  const { AUDIO_TRACKS_UPDATED, AUDIO_TRACK_SWITCHED, SUBTITLE_TRACKS_UPDATED, SUBTITLE_TRACK_SWITCH } =
    Hls.Events;
  /** Forced subtitles that were shown automatically; undefined after a choice of the user. @type {number | undefined} */
  let forced = -1;
  const showForced = () => {
    // Other subtitles are shown.
    if (hls.subtitleTrack !== forced || unlisted().some(({ mode }) => mode === "showing")) return;
    const audio = hls.audioTracks[hls.audioTrack]?.lang ?? handlers.audioLanguage ?? "und";
    forced = hls.subtitleTracks.findIndex(
      (track) => track.forced && languageName(track.lang ?? "") === languageName(audio),
    );
    if (forced !== hls.subtitleTrack) hls.subtitleTrack = forced;
  };
  // When a level is loaded, hls.js has chosen the tracks that it prefers.
  for (const event of [Hls.Events.LEVEL_LOADED, AUDIO_TRACK_SWITCHED]) hls.on(event, showForced);
  for (const event of [
    AUDIO_TRACKS_UPDATED,
    AUDIO_TRACK_SWITCHED,
    SUBTITLE_TRACKS_UPDATED,
    SUBTITLE_TRACK_SWITCH,
    Hls.Events.LEVELS_UPDATED,
    Hls.Events.LEVEL_SWITCHED,
  ])
    hls.on(event, () => handlers.onTracks());
  // Captions (CEA-608) are in the picture: hls.js adds a track when it finds the first one.
  /** @param {TrackEvent} event */
  const onAdded = ({ track }) => {
    const isWanted = track?.kind === "captions" && track.language === handlers.subtitleLanguage;
    const isShown = hls.subtitleTrack !== -1 || unlisted().some(({ mode }) => mode === "showing");
    if (isWanted && !isShown) track.mode = "showing";
    handlers.onTracks();
  };
  video.textTracks.addEventListener("addtrack", onAdded);
  /** Subtitles of a live stream come in whole segments, which would be late for a player that plays parts. */
  const stayBehind = () => {
    const list = hls.latestLevelDetails;
    if (!isLive || !list || (hls.targetLatency ?? 0) >= SUBTITLE_SEGMENTS * list.targetduration) return;
    hls.targetLatency = SUBTITLE_SEGMENTS * list.targetduration;
    const at = hls.liveSyncPosition;
    if (at !== null && at < video.currentTime) seekTo(video, at, list.fragmentStart);
  };
  const unlisted = () => textTracks(video).filter((track) => track.kind === "captions" || isFileTrack(track));
  const pictureTracks = livePictures(Hls, hls, () => handlers.onTracks());
  load();
  limitBackBuffer(Hls, hls, video);
  raiseQuality(Hls, hls);
  hls.attachMedia(video);
  hls.on(Hls.Events.MANIFEST_PARSED, () => startPlaying(video));
  return {
    destroy() {
      clearTimeout(retryTimer);
      video.textTracks.removeEventListener("addtrack", onAdded);
      hls.destroy();
    },
    qualities: () => qualitiesOf(hls),
    ...{ pictureTracks, stayBehind },
    chooseQuality(index) {
      hls.nextLevel = index;
      handlers.onTracks();
    },
    audioTracks: () =>
      hls.audioTracks.map(({ lang = "", name, channels }, index) => ({
        language: lang,
        name,
        channels,
        isChosen: index === hls.audioTrack,
      })),
    chooseAudio(index) {
      hls.audioTrack = index;
    },
    subtitleTracks: () => [
      ...hls.subtitleTracks.map(({ lang = "", name }, index) => ({
        language: lang,
        name,
        isChosen: index === hls.subtitleTrack,
      })),
      ...unlisted().map(describeText),
    ],
    chooseSubtitles(index) {
      const listed = hls.subtitleTracks.length;
      forced = undefined;
      hls.subtitleTrack = index < listed ? index : -1;
      for (const [nth, track] of unlisted().entries())
        track.mode = nth === index - listed ? "showing" : "disabled";
      if (index >= 0 && index < listed) stayBehind();
      handlers.onTracks();
    },
    behindLive() {
      const { liveSyncPosition } = hls;
      return isLive && liveSyncPosition !== null ? liveSyncPosition - video.currentTime : undefined;
    },
    seekBehind(seconds) {
      const { liveSyncPosition: edge, latestLevelDetails: list } = hls;
      return isLive && edge !== null && list !== null && seekTo(video, edge - seconds, list.fragmentStart);
    },
    reload: load,
  };
}

/**
 * Captions (CEA-608) of a live stream that is loaded in parts: hls.js 1.7 resets their decoder before each part of the same segment.
 *
 * @param {typeof import("hls.js").default} Hls
 * @returns {any} the controller of text tracks
 */
function captionsInParts(Hls) {
  const Timeline = /** @type {any} */ (Hls.DefaultConfig.timelineController);
  return class extends Timeline {
    /** @type {unknown} */
    lastSn = -1;
    /** @type {unknown} */
    lastCc = -1;
    lastPartIndex = -1;

    /**
     * @param {unknown} event
     * @param {{ frag: { sn: unknown, cc: unknown }, part?: { index: number } | null }} data
     */
    onFragLoading(event, data) {
      const { frag, part } = data;
      const continues = frag.sn === this.lastSn && frag.cc === this.lastCc;
      if (continues && part && part.index === this.lastPartIndex + 1) this.lastPartIndex = part.index;
      else super.onFragLoading(event, data);
    }
  };
}
