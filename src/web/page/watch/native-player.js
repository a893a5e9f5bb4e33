// @ts-check

import { ownPath } from "../parts/place.js";
import { isFileTrack } from "./subtitle-file.js";

/** The oldest part of a live manifest, which may leave it before the player can load it. */
const EXPIRING_SECONDS = 6;

/**
 * A track as the player names it. `language` is a tag such as `en`; empty if unknown.
 *
 * @typedef {{ language: string, name: string, channels?: string | undefined, isChosen: boolean,
 *   isFile?: boolean }} Track `isFile`: subtitles of a file that the user opened
 */

/**
 * A failure is `unplayable` if the browser cannot decode the stream; another container may help.
 *
 * `behindLive` returns the distance to the live edge of the manifest in seconds; undefined unless the stream is live.
 * `seekBehind` seeks to that distance and plays; it returns false if the manifest does not reach back that far. `reload`
 * loads the manifest again after the session was moved, and plays. `onTracks` is called when the tracks or the choice change; tracks
 * are chosen by index, -1 for no subtitles (`stayBehind`: those of `pictureTracks` are shown), and for a quality that changes with the network. Subtitles in `subtitleLanguage` are shown from the start; else
 * forced ones in the language of the audio, which is `audioLanguage` if the player has no audio tracks, until subtitles are chosen.
 *
 * @typedef {{ onFailure: (kind: "unplayable" | "network", message: string) => void, onTracks: () => void,
 *   subtitleLanguage: string | undefined, audioLanguage: string | undefined }} PlayerHandlers
 * @typedef {{ destroy: () => void, behindLive: () => number | undefined,
 *   seekBehind: (seconds: number) => boolean, reload: () => void,
 *   qualities: () => import("./quality-menu.js").Qualities, chooseQuality: (index: number) => void,
 *   audioTracks: () => Track[], chooseAudio: (index: number) => void,
 *   subtitleTracks: () => Track[], chooseSubtitles: (index: number) => void, stayBehind?: () => void,
 *   pictureTracks?: () => import("./picture-subtitles.js").PictureTrack[] }} Player
 */

/**
 * Plays a URL with the player of the browser.
 *
 * @param {HTMLVideoElement} video
 * @param {string} url
 * @param {number} atSeconds
 * @param {PlayerHandlers} handlers
 * @returns {Player}
 */
export function attachNative(video, url, atSeconds, handlers) {
  const onError = () => {
    const kind = video.error?.code === MediaError.MEDIA_ERR_NETWORK ? "network" : "unplayable";
    handlers.onFailure(kind, video.error?.message ?? "unknown");
  };
  video.addEventListener("error", onError);
  const tracks = nativeTracks(video);
  const seek = () => {
    if (atSeconds > 0) video.currentTime = atSeconds;
    const index = tracks.subtitleTracks().findIndex(({ language }) => language === handlers.subtitleLanguage);
    if (index >= 0) tracks.chooseSubtitles(index);
  };
  video.addEventListener("loadedmetadata", seek, { once: true });
  video.src = ownPath(url);
  startPlaying(video);
  const lists = [video.textTracks, audioTracksOf(video)].filter((list) => list !== undefined);
  for (const list of lists)
    for (const event of ["addtrack", "change"]) list.addEventListener(event, handlers.onTracks);
  const edge = () => {
    const { seekable, duration } = video;
    return duration === Number.POSITIVE_INFINITY && seekable.length > 0
      ? seekable.end(seekable.length - 1)
      : undefined;
  };
  return {
    behindLive() {
      const at = edge();
      return at === undefined ? undefined : at - video.currentTime;
    },
    seekBehind(seconds) {
      const at = edge();
      return at !== undefined && seekTo(video, at - seconds, video.seekable.start(0));
    },
    reload() {
      video.src = ownPath(url);
      startPlaying(video);
    },
    ...tracks,
    destroy() {
      for (const list of lists)
        for (const event of ["addtrack", "change"]) list.removeEventListener(event, handlers.onTracks);
      video.removeEventListener("error", onError);
      video.removeEventListener("loadedmetadata", seek);
      video.removeAttribute("src");
      video.load();
    },
  };
}

/**
 * The tracks that the browser itself offers. Only Safari has audio tracks.
 *
 * @param {HTMLVideoElement} video
 * @returns {Pick<Player, "qualities" | "chooseQuality" | "audioTracks" | "chooseAudio" | "subtitleTracks" | "chooseSubtitles">}
 */
export function nativeTracks(video) {
  const audio = () => [...(audioTracksOf(video) ?? [])];
  return {
    // The browser adapts by itself.
    qualities: () => ({ isAutomatic: true, all: [] }),
    chooseQuality() {},
    audioTracks: () =>
      audio().map(({ language, label, enabled }) => ({ language, name: label, isChosen: enabled })),
    chooseAudio(index) {
      for (const [nth, track] of audio().entries()) track.enabled = nth === index;
    },
    subtitleTracks: () => textTracks(video).map(describeText),
    chooseSubtitles(index) {
      for (const [nth, track] of textTracks(video).entries())
        track.mode = nth === index ? "showing" : "disabled";
    },
  };
}

/**
 * @param {HTMLVideoElement} video
 * @returns {(EventTarget & Iterable<{ language: string, label: string, enabled: boolean }>) | undefined}
 */
function audioTracksOf(video) {
  return /** @type {any} */ (video).audioTracks;
}

/**
 * Returns the subtitles and captions of a video.
 *
 * @param {HTMLVideoElement} video
 */
export function textTracks(video) {
  return [...video.textTracks].filter(({ kind }) => kind === "subtitles" || kind === "captions");
}

/**
 * @param {TextTrack} track
 * @returns {Track}
 */
export function describeText(track) {
  const { language, label: name, mode } = track;
  return { language, name, isChosen: mode === "showing", isFile: isFileTrack(track) };
}

/**
 * @param {HTMLVideoElement} video
 * @param {number} at
 * @param {number} first the earliest available position, which moves forward all the time
 */
export function seekTo(video, at, first) {
  if (at < first + EXPIRING_SECONDS) return false;
  video.currentTime = at;
  startPlaying(video);
  return true;
}

/** @param {HTMLVideoElement} video */
export function startPlaying(video) {
  // Browsers may require a click on the controls before they play.
  video.play().catch(() => {});
}
