// @ts-check

import { t } from "../parts/text.js";
import { readError } from "./engine.js";

const MAX_BYTES = 10_000_000;
/** The id of the track element. */
const TRACK_ID = "subtitle-file";

/**
 * Returns true if the name ends like that of a subtitle file.
 *
 * @param {string} name
 */
export function isSubtitleFile(name) {
  return /\.(?:srt|ass|ssa|vtt)$/i.test(name);
}

/**
 * Returns true if a track of a video is the file that the user opened.
 *
 * @param {TextTrack} track
 */
export function isFileTrack({ id }) {
  return id === TRACK_ID;
}

/**
 * Returns true if a video shows the file that the user opened.
 *
 * @param {HTMLVideoElement} video
 */
export function showsSubtitleFile({ textTracks }) {
  return [...textTracks].some((track) => isFileTrack(track) && track.mode === "showing");
}

/**
 * Converts a subtitle file of the user to a track of the video, instead of the one before it. The track is off. Throws an error for
 * the user.
 *
 * @param {HTMLVideoElement} video
 * @param {File} file
 * @param {AbortSignal} signal
 */
export async function addSubtitleFile(video, file, signal) {
  if (!isSubtitleFile(file.name)) throw new Error(t("Choose a subtitle file (.srt, .ass, .ssa or .vtt)."));
  if (file.size > MAX_BYTES)
    throw new Error(t("{name} is too large for subtitles (the limit is 10 MB).", { name: file.name }));
  const query = new URLSearchParams({ name: file.name.slice(-100) });
  const response = await fetch(`app/subtitles?${query}`, { method: "POST", body: file, signal });
  if (!response.ok) throw await readError(response);
  const converted = await response.blob();
  signal.throwIfAborted();
  removeSubtitleFile(video);
  const track = document.createElement("track");
  track.id = TRACK_ID;
  track.kind = "subtitles";
  track.label = file.name;
  track.src = URL.createObjectURL(converted);
  video.append(track);
}

/**
 * Removes the subtitle file of the user, if there is one.
 *
 * @param {HTMLVideoElement} video
 */
export function removeSubtitleFile(video) {
  for (const track of video.querySelectorAll("track")) {
    if (track.id !== TRACK_ID) continue;
    URL.revokeObjectURL(track.src);
    track.remove();
  }
}
