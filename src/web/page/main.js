// @ts-check
import { problemText } from "./api.js";
import { playbackPath } from "./engine.js";
import { connectHealth } from "./health.js";
import { linkTitle, readLink } from "./link.js";
import { Playback } from "./playback.js";
import { connectPlaylist } from "./playlist.js";
import { isList } from "./playlist-add.js";
import { openLink } from "./playlist-dialog.js";
import { forgetLinks, recentLinks, rememberLink } from "./recent.js";
import { listenForRemoteControl } from "./remote-control.js";
import { connectScreens } from "./screen-controls.js";
import { findElements, showLink, showProblem, showRecent, showToast } from "./view.js";

/** A transport file is never larger. */
const MAX_TORRENT_BYTES = 10_000_000;

/**
 * @typedef {import("./link.js").Link} Link
 * @typedef {import("./engine.js").Choice} Choice
 */

/** Connects the elements of the page with what they do. */
function main() {
  const page = findElements();
  const playerId = randomId();
  /** @type {Playback | undefined} */
  let playback;
  /** @type {Omit<import("./screen-controls.js").Playing, "atSeconds"> | undefined} */
  let playing;

  /**
   * @param {Link | Uint8Array} source
   * @param {Choice} [choice]
   * @param {string} [title] where it is known better than its content says
   */
  function play(source, choice = {}, title = "") {
    const after = playback?.stop();
    showProblem(page, "");
    showLink(page, "");
    playing = undefined;
    page.stage.hidden = false;
    if (choice.container === undefined) page.title.textContent = title;
    playback = new Playback({
      page,
      source,
      playerId,
      choice,
      after,
      onContent(content, session, fileIndex) {
        const file = content.files.find((one) => one.index === fileIndex);
        page.title.textContent = title || content.name;
        const named = file?.name.split("/").pop() ?? "file";
        const raw = `/files/${session.infohash}/${fileIndex}/${encodeURIComponent(named)}`;
        page.raw.onclick = () => window.open(raw, "_blank", "noopener");
        const link = source instanceof Uint8Array ? hashLink(session.infohash) : source;
        // Another screen knows content, not this list.
        playing = { link: link.parameter === "item" ? hashLink(session.infohash) : link, fileIndex };
        offerLinks(link, fileIndex);
        page.audio.onchange = () => {
          const atSeconds = playback?.atSeconds ?? 0;
          play(link, { ...choice, fileIndex, audioLanguage: page.audio.value, atSeconds }, title);
        };
        page.files.onchange = () => play(link, { fileIndex: Number(page.files.value) }, title);
        remember({ title: title || content.name || linkTitle(link), link, infohash: session.infohash });
      },
      onUnplayable(message) {
        // What the browser refuses in TS it may take as fMP4; after that only another player helps.
        if (choice.container === undefined) {
          play(source, { ...choice, container: "fmp4" }, title);
          return;
        }
        showProblem(
          page,
          `This browser cannot play it (${message}). Copy the TS link into VLC or mpv instead.`,
        );
        playback?.stop();
      },
    });
    playback.run();
  }

  /**
   * @param {Link} link
   * @param {number} fileIndex
   */
  function offerLinks(link, fileIndex) {
    const address = (/** @type {"getstream" | "manifest.m3u8"} */ output) =>
      location.origin + playbackPath(link, output, { fileIndex });
    page.copyTs.onclick = () => copy(address("getstream"));
    page.copyHls.onclick = () => copy(address("manifest.m3u8"));
  }

  /** @param {string} text */
  async function copy(text) {
    if (await copyText(text)) showToast(page, "Link copied");
    else showLink(page, text);
  }

  /** @param {import("./recent.js").RecentLink} played */
  async function remember(played) {
    await rememberLink(played);
    await refreshRecent();
  }

  async function refreshRecent() {
    showRecent(page, await recentLinks(), ({ link, title }) => {
      const isItem = link.parameter === "item";
      page.link.value = isItem ? "" : link.value;
      play(link, {}, isItem ? title : "");
    });
  }

  /** @param {File} file */
  async function takeFile(file) {
    if (await isList(file)) await playlist.addFile(file);
    else await playFile(file);
  }

  /** @param {File} file */
  async function playFile(file) {
    if (file.size > MAX_TORRENT_BYTES) {
      showProblem(page, `${file.name} is too large to be a torrent file`);
      return;
    }
    page.link.value = "";
    play(new Uint8Array(await file.arrayBuffer()));
  }

  const playlist = connectPlaylist({
    play(item) {
      page.link.value = "";
      play({ parameter: "item", value: String(item.id) }, {}, item.title);
      page.stage.scrollIntoView({ block: "start", behavior: "smooth" });
    },
    copy: async (text) => ((await copyText(text)) ? showToast(page, "Link copied") : openLink(text)),
    say: (text) => showToast(page, text),
    onRights: (rights) => {
      page.add.hidden = rights !== "full";
    },
  });

  page.add.addEventListener("click", async () => {
    page.add.disabled = true;
    showProblem(page, "");
    try {
      await playlist.addLink(page.link.value);
      page.link.value = "";
    } catch (error) {
      showProblem(page, problemText(error));
    } finally {
      page.add.disabled = false;
    }
  });
  page.form.addEventListener("submit", (event) => {
    event.preventDefault();
    const link = readLink(page.link.value);
    if (link === undefined) {
      showProblem(page, "This is neither a magnet link, an infohash nor the address of a torrent file.");
      return;
    }
    play(link);
  });
  page.stop.addEventListener("click", () => {
    playback?.stop();
    playing = undefined;
    page.stage.hidden = true;
  });
  page.chooseFile.addEventListener("click", () => page.torrentFile.click());
  page.torrentFile.addEventListener("change", () => {
    const file = page.torrentFile.files?.[0];
    if (file !== undefined) takeFile(file);
    page.torrentFile.value = "";
  });
  page.forget.addEventListener("click", async () => {
    await forgetLinks();
    await refreshRecent();
  });
  listenForDrops(page.drop, takeFile);
  listenForRemoteControl(document.body);
  connectHealth(page.health);
  connectScreens(page, {
    playing: () => playing && playback && { ...playing, atSeconds: playback.atSeconds },
    play({ link, fileIndex, atSeconds }) {
      page.link.value = link.value;
      play(link, { fileIndex, atSeconds });
    },
  });
  window.addEventListener("pagehide", () => playback?.stop());
  // `/#magnet:…` fills the form; it does not play by itself, for any page may link here.
  if (location.hash.length > 1) page.link.value = location.hash.slice(1);
  refreshRecent();
  page.link.focus();
}

/**
 * @param {HTMLElement} veil
 * @param {(file: File) => void} drop
 */
function listenForDrops(veil, drop) {
  window.addEventListener("dragover", (event) => {
    event.preventDefault();
    veil.hidden = false;
  });
  window.addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) veil.hidden = true;
  });
  window.addEventListener("drop", (event) => {
    event.preventDefault();
    veil.hidden = true;
    const file = event.dataTransfer?.files[0];
    if (file !== undefined) drop(file);
  });
}

/** @param {string} text */
async function copyText(text) {
  // Browsers give the clipboard to secure pages only; over plain HTTP from another device it is copied by hand.
  if (navigator.clipboard === undefined) return false;
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // The user said no.
  }
}

/**
 * @param {string} infohash
 * @returns {Link}
 */
function hashLink(infohash) {
  return { parameter: "infohash", value: infohash };
}

/** `crypto.randomUUID` exists on secure pages only. */
function randomId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

main();
