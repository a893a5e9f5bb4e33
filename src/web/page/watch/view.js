// @ts-check

import { byId, make, options } from "../parts/dom.js";
import { bytesText, languageName, sparklinePath, speedText, statusText } from "../parts/figures.js";
import { t } from "../parts/text.js";

/**
 * Finds the elements of the page. All texts are set with `textContent`, because names are untrusted.
 */
export function findElements() {
  return {
    form: byId("link-form", HTMLFormElement),
    link: byId("link", HTMLInputElement),
    play: byId("play", HTMLButtonElement),
    add: byId("add", HTMLButtonElement),
    chooseFile: byId("choose-file", HTMLButtonElement),
    torrentFile: byId("torrent-file", HTMLInputElement),
    problem: byId("problem", HTMLElement),
    stage: byId("stage", HTMLElement),
    screen: byId("screen", HTMLElement),
    video: byId("video", HTMLVideoElement),
    failure: byId("failure", HTMLElement),
    failureText: byId("failure-text", HTMLElement),
    failureSteps: byId("failure-steps", HTMLElement),
    typedChannel: byId("typed-channel", HTMLElement),
    overlay: byId("overlay", HTMLElement),
    leaveTheatre: byId("leave-theatre", HTMLButtonElement),
    onNow: byId("on-now", HTMLElement),
    seekRow: byId("seek-row", HTMLElement),
    seekAt: byId("seek-at", HTMLElement),
    seek: byId("seek", HTMLInputElement),
    seekLength: byId("seek-length", HTMLElement),
    previousChannel: byId("previous-channel", HTMLButtonElement),
    playPause: byId("play-pause", HTMLButtonElement),
    nextChannel: byId("next-channel", HTMLButtonElement),
    nextPart: byId("next-part", HTMLButtonElement),
    mute: byId("mute", HTMLButtonElement),
    volume: byId("volume", HTMLInputElement),
    sleep: byId("sleep", HTMLSelectElement),
    showStats: byId("show-stats", HTMLButtonElement),
    remotePlayback: byId("remote-playback", HTMLButtonElement),
    pictureInPicture: byId("picture-in-picture", HTMLButtonElement),
    theatre: byId("theatre", HTMLButtonElement),
    fullscreen: byId("fullscreen", HTMLButtonElement),
    pictureSize: byId("picture-size", HTMLElement),
    buffered: byId("buffered", HTMLElement),
    dropped: byId("dropped", HTMLElement),
    pictures: byId("pictures", HTMLCanvasElement),
    waiting: byId("waiting", HTMLElement),
    sourceNote: byId("source-note", HTMLElement),
    waitingText: byId("waiting-text", HTMLElement),
    title: byId("title", HTMLElement),
    live: byId("live", HTMLElement),
    liveState: byId("live-state", HTMLElement),
    liveWindow: byId("live-window", HTMLElement),
    liveBack: byId("live-back", HTMLInputElement),
    liveLength: byId("live-length", HTMLElement),
    goLive: byId("go-live", HTMLButtonElement),
    filesLabel: byId("files-label", HTMLElement),
    files: byId("files", HTMLSelectElement),
    qualityLabel: byId("quality-label", HTMLElement),
    quality: byId("quality", HTMLSelectElement),
    audioLabel: byId("audio-label", HTMLElement),
    audio: byId("audio", HTMLSelectElement),
    subtitlesLabel: byId("subtitles-label", HTMLElement),
    subtitles: byId("subtitles", HTMLSelectElement),
    subtitleFile: byId("subtitle-file-input", HTMLInputElement),
    subtitleDelayGroup: byId("subtitle-delay-group", HTMLElement),
    subtitleDelay: byId("subtitle-delay", HTMLOutputElement),
    subtitlesEarlier: byId("subtitles-earlier", HTMLButtonElement),
    subtitlesLater: byId("subtitles-later", HTMLButtonElement),
    silent: byId("silent", HTMLElement),
    held: byId("held", HTMLElement),
    progress: byId("progress", HTMLProgressElement),
    progressText: byId("progress-text", HTMLElement),
    status: byId("status", HTMLElement),
    peers: byId("peers", HTMLElement),
    speedDown: byId("speed-down", HTMLElement),
    speedUp: byId("speed-up", HTMLElement),
    downloaded: byId("downloaded", HTMLElement),
    uploaded: byId("uploaded", HTMLElement),
    sparkline: byId("sparkline-path", SVGPathElement),
    stop: byId("stop", HTMLButtonElement),
    copyTs: byId("copy-ts", HTMLButtonElement),
    copyHls: byId("copy-hls", HTMLButtonElement),
    raw: byId("raw", HTMLButtonElement),
    copied: byId("copied", HTMLElement),
    copiedLink: byId("copied-link", HTMLInputElement),
    send: byId("send", HTMLButtonElement),
    playOn: byId("play-on", HTMLButtonElement),
    sendForm: byId("send-form", HTMLFormElement),
    sendCode: byId("send-code", HTMLInputElement),
    guide: byId("guide", HTMLButtonElement),
    recordings: byId("recordings", HTMLButtonElement),
    receive: byId("receive", HTMLButtonElement),
    receiver: byId("receiver", HTMLElement),
    receiverCode: byId("receiver-code", HTMLElement),
    receiverStop: byId("receiver-stop", HTMLButtonElement),
    recent: byId("recent", HTMLElement),
    recentList: byId("recent-list", HTMLElement),
    forget: byId("forget", HTMLButtonElement),
    drop: byId("drop", HTMLElement),
    profile: byId("profile", HTMLButtonElement),
  };
}

/** @typedef {ReturnType<typeof findElements>} Elements */

/**
 * Shows the figures of a session.
 *
 * @param {Elements} page
 * @param {import("./engine.js").SessionInfo} info
 * @param {readonly number[]} speeds download speeds for the sparkline, oldest first
 */
export function showInfo(page, info, speeds) {
  const share = Math.max(0, Math.min(100, info.total_progress));
  page.status.textContent =
    (info.status === "dl" && pictureText(page.video)) || statusText(info.status, info.peers);
  page.peers.textContent = String(info.peers);
  page.speedDown.textContent = speedText(info.speed_down);
  page.speedUp.textContent = speedText(info.speed_up);
  page.downloaded.textContent = bytesText(info.downloaded);
  page.uploaded.textContent = bytesText(info.uploaded);
  page.progress.value = share;
  page.progressText.textContent = `${share} %`;
  page.sparkline.setAttribute("d", sparklinePath(speeds, 120, 28));
  showPicture(page);
}

/**
 * Shows what the browser knows about the picture.
 *
 * @param {Elements} page
 */
function showPicture({ video, pictureSize, buffered, dropped }) {
  const { videoWidth, videoHeight, currentTime } = video;
  const ranges = [...Array(video.buffered.length).keys()];
  const range = ranges.find(
    (i) => video.buffered.start(i) <= currentTime && currentTime <= video.buffered.end(i),
  );
  const ahead = range === undefined ? 0 : video.buffered.end(range) - currentTime;
  const { droppedVideoFrames = 0, totalVideoFrames = 0 } = video.getVideoPlaybackQuality();
  pictureSize.textContent = videoWidth > 0 ? `${videoWidth}×${videoHeight}` : "–";
  buffered.textContent = `${ahead.toFixed(1)} s`;
  dropped.textContent = `${droppedVideoFrames} / ${totalVideoFrames}`;
}

/**
 * Returns what only the video element knows: whether it has ended or waits for data; else an empty text.
 *
 * @param {HTMLVideoElement} video
 */
function pictureText(video) {
  if (video.ended) return t("Ended");
  return !video.paused && video.readyState < HTMLMediaElement.HAVE_FUTURE_DATA ? t("Waiting for data") : "";
}

/**
 * Clears the figures before a new session starts.
 *
 * @param {Elements} page
 */
export function clearInfo(page) {
  const figures = [page.status, page.peers, page.speedDown, page.speedUp, page.downloaded, page.uploaded];
  for (const figure of figures) figure.textContent = "–";
  page.progress.value = 0;
  page.progressText.textContent = "0 %";
  page.sparkline.setAttribute("d", "");
  page.filesLabel.hidden = true;
  page.qualityLabel.hidden = true;
  page.audioLabel.hidden = true;
  page.subtitlesLabel.hidden = true;
  page.silent.hidden = true;
}

/**
 * Shows the list of playable files; hides it if there are fewer than two.
 *
 * @param {Elements} page
 * @param {readonly import("./engine.js").ContentFile[]} files
 * @param {number} chosen
 */
export function showFiles(page, files, chosen) {
  const choices = files
    .filter(({ isPlayable }) => isPlayable)
    .map(({ index, name, size }) => /** @type {const} */ ([String(index), `${name} (${bytesText(size)})`]));
  page.files.replaceChildren(...options(choices, String(chosen)));
  page.filesLabel.hidden = choices.length < 2;
}

/** Display names of codecs whose names in files are cryptic. */
const CODEC_NAMES = new Map([
  ["A_TRUEHD", "TrueHD"],
  ["mlpa", "TrueHD"],
  ["truehd", "TrueHD"],
  ["aac_latm", "AAC (LATM)"],
]);

/**
 * Says which sound of a file cannot be played; hides that if there is none.
 *
 * @param {Elements} page
 * @param {readonly import("./engine.js").NamedTrack[]} tracks
 */
export function showSilent(page, tracks) {
  const named = tracks.map(({ language, codec }) => {
    const name = CODEC_NAMES.get(codec) ?? codec;
    return language === "und" ? name : `${languageName(language)}, ${name}`;
  });
  const names = [...new Set(named)].join("; ");
  page.silent.textContent = t(
    "The sound ({names}) cannot be decoded here. Open the original file in a player such as VLC.",
    { names },
  );
  page.silent.hidden = tracks.length === 0;
}

/**
 * Shows the recent links.
 *
 * @param {Elements} page
 * @param {readonly import("../parts/memory.js").RecentLink[]} links
 * @param {(played: import("../parts/memory.js").RecentLink) => void} play
 */
export function showRecent(page, links, play) {
  const items = links.map((played) =>
    make("li", {}, make("button", { type: "button", onclick: () => play(played) }, played.title)),
  );
  page.recentList.replaceChildren(...items);
  page.recent.hidden = items.length === 0;
}

/**
 * Shows an error message under the form; an empty text hides it.
 *
 * @param {Elements} page
 * @param {string} text
 */
export function showProblem(page, text) {
  page.problem.textContent = text;
  page.problem.hidden = text === "";
}

/**
 * Shows over the video why it does not play, and what the user can do; an empty text hides it.
 *
 * @param {Elements} page
 * @param {string} text
 * @param {readonly Node[]} [steps] buttons and links
 */
export function showFailure(page, text, steps = []) {
  page.failureText.textContent = text;
  page.failureSteps.replaceChildren(...steps);
  page.failure.hidden = text === "";
}

/**
 * Shows what playback waits for, over the video; an empty text hides it.
 *
 * @param {Elements} page
 * @param {string} text
 */
export function showWaiting(page, text) {
  page.waitingText.textContent = text;
  page.waiting.hidden = text === "";
}

/**
 * Shows a link, selected for copying by hand; an empty text hides it.
 *
 * @param {Elements} page
 * @param {string} text
 */
export function showLink(page, text) {
  page.copied.hidden = text === "";
  page.copiedLink.value = text;
  if (text === "") return;
  page.copiedLink.focus();
  page.copiedLink.select();
}
