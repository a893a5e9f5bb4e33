// @ts-check
import { bytesText, languageName, sparklinePath, speedText, statusText } from "./figures.js";

/**
 * The elements of the page, found once. Everything is written with `textContent`: names come from strangers.
 */
export function findElements() {
  return {
    form: element("link-form", HTMLFormElement),
    link: element("link", HTMLInputElement),
    play: element("play", HTMLButtonElement),
    add: element("add", HTMLButtonElement),
    chooseFile: element("choose-file", HTMLButtonElement),
    torrentFile: element("torrent-file", HTMLInputElement),
    problem: element("problem", HTMLElement),
    stage: element("stage", HTMLElement),
    video: element("video", HTMLVideoElement),
    waiting: element("waiting", HTMLElement),
    waitingText: element("waiting-text", HTMLElement),
    title: element("title", HTMLElement),
    live: element("live", HTMLElement),
    liveState: element("live-state", HTMLElement),
    liveWindow: element("live-window", HTMLElement),
    liveBack: element("live-back", HTMLInputElement),
    liveKept: element("live-kept", HTMLElement),
    goLive: element("go-live", HTMLButtonElement),
    filesLabel: element("files-label", HTMLElement),
    files: element("files", HTMLSelectElement),
    audioLabel: element("audio-label", HTMLElement),
    audio: element("audio", HTMLSelectElement),
    held: element("held", HTMLElement),
    progress: element("progress", HTMLProgressElement),
    progressText: element("progress-text", HTMLElement),
    status: element("status", HTMLElement),
    peers: element("peers", HTMLElement),
    speedDown: element("speed-down", HTMLElement),
    speedUp: element("speed-up", HTMLElement),
    downloaded: element("downloaded", HTMLElement),
    uploaded: element("uploaded", HTMLElement),
    sparkline: element("sparkline-path", SVGPathElement),
    stop: element("stop", HTMLButtonElement),
    copyTs: element("copy-ts", HTMLButtonElement),
    copyHls: element("copy-hls", HTMLButtonElement),
    raw: element("raw", HTMLButtonElement),
    copied: element("copied", HTMLElement),
    copiedLink: element("copied-link", HTMLInputElement),
    send: element("send", HTMLButtonElement),
    sendForm: element("send-form", HTMLFormElement),
    sendCode: element("send-code", HTMLInputElement),
    health: element("health", HTMLButtonElement),
    receive: element("receive", HTMLButtonElement),
    receiver: element("receiver", HTMLElement),
    receiverCode: element("receiver-code", HTMLElement),
    receiverStop: element("receiver-stop", HTMLButtonElement),
    recent: element("recent", HTMLElement),
    recentList: element("recent-list", HTMLElement),
    forget: element("forget", HTMLButtonElement),
    toast: element("toast", HTMLElement),
    drop: element("drop", HTMLElement),
  };
}

/** @typedef {ReturnType<typeof findElements>} Elements */

/**
 * @param {Elements} page
 * @param {import("./engine.js").SessionInfo} info
 * @param {readonly number[]} speeds
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
}

/**
 * What only the picture tells: the engine does not know whether it is shown. Empty where it is.
 *
 * @param {HTMLVideoElement} video
 */
function pictureText(video) {
  if (video.ended) return "Ended";
  return !video.paused && video.readyState < HTMLMediaElement.HAVE_FUTURE_DATA ? "Waiting for data" : "";
}

/**
 * Nothing is known yet of what starts now.
 *
 * @param {Elements} page
 */
export function clearInfo(page) {
  const figures = [page.status, page.peers, page.speedDown, page.speedUp, page.downloaded, page.uploaded];
  for (const figure of figures) figure.textContent = "–";
  page.progress.value = 0;
  page.progressText.textContent = "0 %";
  page.sparkline.setAttribute("d", "");
  page.audioLabel.hidden = true;
}

/**
 * The choice of a file, where there is one to make.
 *
 * @param {Elements} page
 * @param {readonly import("./engine.js").ContentFile[]} files
 * @param {number} chosen
 */
export function showFiles(page, files, chosen) {
  const playable = files.filter((file) => file.isPlayable);
  const options = playable.map((file) => {
    const option = document.createElement("option");
    option.value = String(file.index);
    option.textContent = `${file.name} (${bytesText(file.size)})`;
    option.selected = file.index === chosen;
    return option;
  });
  page.files.replaceChildren(...options);
  page.filesLabel.hidden = options.length < 2;
}

/**
 * The choice of a language, where there is one to make.
 *
 * @param {Elements} page
 * @param {readonly string[]} languages
 * @param {string | undefined} chosen
 */
export function showLanguages(page, languages, chosen) {
  const options = languages.map((language) => {
    const option = document.createElement("option");
    option.value = language;
    option.textContent = languageName(language);
    option.selected = language === chosen;
    return option;
  });
  page.audio.replaceChildren(...options);
  page.audioLabel.hidden = options.length < 2;
}

/**
 * @param {Elements} page
 * @param {readonly import("./recent.js").RecentLink[]} links
 * @param {(played: import("./recent.js").RecentLink) => void} play
 */
export function showRecent(page, links, play) {
  const items = links.map((played) => {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = played.title;
    button.addEventListener("click", () => play(played));
    item.append(button);
    return item;
  });
  page.recentList.replaceChildren(...items);
  page.recent.hidden = items.length === 0;
}

/**
 * A message under the form; none for an empty text.
 *
 * @param {Elements} page
 * @param {string} text
 */
export function showProblem(page, text) {
  page.problem.textContent = text;
  page.problem.hidden = text === "";
}

/**
 * What is being waited for, over the video; none for an empty text.
 *
 * @param {Elements} page
 * @param {string} text
 */
export function showWaiting(page, text) {
  page.waitingText.textContent = text;
  page.waiting.hidden = text === "";
}

/**
 * A link to copy by hand, selected already; none for an empty text.
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

/**
 * A word that goes away by itself.
 *
 * @param {Elements} page
 * @param {string} text
 */
export function showToast(page, text) {
  page.toast.textContent = text;
  page.toast.hidden = false;
  setTimeout(() => {
    if (page.toast.textContent === text) page.toast.hidden = true;
  }, 2500);
}

/**
 * @template {Element} T
 * @param {string} id
 * @param {new () => T} type
 * @returns {T}
 */
function element(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}
