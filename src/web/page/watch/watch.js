// @ts-check

import { problemText } from "../parts/api.js";
import { action, byId, make } from "../parts/dom.js";
import { timeText } from "../parts/figures.js";
import { hashLink, linkTitle, readLink } from "../parts/link.js";
import {
  forgetLinks,
  recentLinks,
  rememberedLanguage,
  rememberLanguage,
  rememberLink,
} from "../parts/memory.js";
import { appUrl } from "../parts/place.js";
import { t } from "../parts/text.js";
import { copyLink, copyText, showToast } from "../parts/toast.js";
import { connectDevices } from "./devices.js";
import { playbackPath, randomId } from "./engine.js";
import { connectGuide } from "./guide.js";
import { openGuideGrid } from "./guide-grid.js";
import { Home } from "./home.js";
import { connectFiles } from "./open-files.js";
import { Playback } from "./playback.js";
import { PlayerControls } from "./player-controls.js";
import { connectKeys, connectMediaSession, showMedia } from "./player-keys.js";
import { connectPlaylist } from "./playlist.js";
import { itemWithNumber } from "./playlist-source.js";
import { connectProfiles } from "./profiles.js";
import { connectRecordings, openRecordDialog } from "./recordings.js";
import { Resume } from "./resume.js";
import { connectScreens } from "./screen-controls.js";
import { SubtitleDelay } from "./subtitle-delay.js";
import { removeSubtitleFile } from "./subtitle-file.js";
import { findElements, showFailure, showLink, showProblem, showRecent } from "./view.js";

/**
 * @typedef {import("../parts/link.js").Link} Link
 * @typedef {import("./engine.js").Choice} Choice
 */

/**
 * Opens the place Watch: connects its elements with their functions.
 *
 * @param {HTMLElement} root
 * @param {import("../parts/live-data.js").LiveData} live
 * @returns {import("../parts/place.js").Place}
 */
export function openPlace(root, live) {
  const page = findElements();
  const playerId = randomId();
  const subtitleDelay = new SubtitleDelay(page);
  const keys = {
    ...{ stepChannel, showChannel, stop },
    isPlaying: () => !page.stage.hidden && !page.stage.closest("[hidden]"),
    isChannel: () => playedItem !== undefined,
    playNextPart: () => playNextPart(),
  };
  const controls = new PlayerControls(page, keys);
  connectKeys(page, controls, keys);
  connectMediaSession(controls, keys);
  /** The played file, to which the delay and the subtitle file of the user belong. */
  let playedFile = "";
  /** @type {Playback | undefined} */
  let playback;
  /** @type {Omit<import("./screen-controls.js").Playing, "atSeconds"> | undefined} */
  let playing;
  /** Content that a device can play although it has not started here; undefined for the bytes of a transport file.
   * @type {{ link: Link, fileIndex: number | undefined } | undefined} */
  let starting;
  /** The played item of the list; undefined for other content. @type {import("./playlist-source.js").ListItem | undefined} */
  let playedItem;
  let playNextPart = () => {};
  /** @type {Partial<Record<import("../parts/memory.js").TrackKind, string | undefined>>} what the user chose last */
  const languages = {};
  for (const kind of /** @type {const} */ (["audio", "subtitles"]))
    rememberedLanguage(kind).then(
      (remembered) => {
        languages[kind] ??= remembered;
      },
      () => {},
    );

  /**
   * @param {Link | Uint8Array} source
   * @param {Choice} [chosen] the audio language defaults to the one that the user chose last
   * @param {string} [title] replaces the title of the content
   */
  function play(source, chosen = {}, title = "") {
    const choice = { ...chosen, audioLanguage: chosen.audioLanguage ?? languages.audio };
    resume.leave();
    const previousStopped = playback?.stop();
    showProblem(page, "");
    showFailure(page, "");
    showLink(page, "");
    playing = undefined;
    starting = source instanceof Uint8Array ? undefined : { link: source, fileIndex: choice.fileIndex };
    page.stage.hidden = false;
    playNextPart = () => {};
    controls.showContent({ isChannel: playedItem !== undefined, hasNextPart: false });
    showMedia(title || t("Starting"), playedItem?.iconPath ?? "");
    const retry = () => play(source, { ...choice, atSeconds: playback?.atSeconds ?? 0 }, title);
    if (choice.container === undefined) page.title.textContent = title;
    playback = new Playback({
      page,
      live,
      source,
      playerId,
      choice,
      previousStopped,
      onContent(content, session, fileIndex) {
        if (playedFile !== `${session.infohash}/${fileIndex}`) {
          playedFile = `${session.infohash}/${fileIndex}`;
          subtitleDelay.reset();
          removeSubtitleFile(page.video);
        }
        const file = content.files.find(({ index }) => index === fileIndex);
        page.title.textContent = title || content.name;
        showMedia(page.title.textContent, playedItem?.iconPath ?? "");
        const fileName = file?.name.split("/").pop() ?? "file";
        const raw = `files/${session.infohash}/${fileIndex}/${encodeURIComponent(fileName)}`;
        page.raw.onclick = () => window.open(raw, "_blank", "noopener");
        const link = source instanceof Uint8Array ? hashLink(session.infohash) : source;
        // Another device can play the content, but does not know the items of this playlist.
        const kept = playedItem ? `item:${playedItem.id}` : link.value;
        const part =
          content.order.length > 1 && file
            ? `${page.title.textContent}: ${fileName}`
            : page.title.textContent;
        const film = {
          infohash: session.infohash,
          file_index: fileIndex,
          title: part.slice(0, 300),
          link: kept,
        };
        resume.follow(session.is_live === 1 ? undefined : film);
        playing = { link: link.parameter === "item" ? hashLink(session.infohash) : link, fileIndex };
        offerLinks(link, fileIndex);
        const next = content.order[content.order.indexOf(fileIndex) + 1];
        const isPart = content.order.includes(fileIndex);
        const hasNextPart = isPart && next !== undefined;
        if (hasNextPart)
          playNextPart = () => play(link, { fileIndex: next, audioLanguage: choice.audioLanguage }, title);
        page.video.onended = playNextPart;
        controls.showContent({ isChannel: playedItem !== undefined, hasNextPart });
        page.files.onchange = () => play(link, { fileIndex: Number(page.files.value) }, title);
        remember({ title: title || content.name || linkTitle(link), link, infohash: session.infohash });
      },
      subtitleLanguage: languages.subtitles,
      onChosen(kind, language) {
        languages[kind] = language;
        // If the browser cannot store it, the choice holds until the page is closed.
        rememberLanguage(kind, language).catch(() => {});
      },
      onLanguage(fileIndex, audioLanguage) {
        const atSeconds = playback?.atSeconds ?? 0;
        play(source, { ...choice, fileIndex, audioLanguage, atSeconds }, title);
      },
      onUnplayable(message, isFilm) {
        // The browser may accept fragmented MP4 even if it refuses MPEG-TS. If not, only another player can help. Live streams have one
        // container.
        if (isFilm && choice.container === undefined) {
          play(source, { ...choice, container: "fmp4" }, title);
          return;
        }
        fail(
          t(
            "This browser cannot play this format ({reason}). Copy the player link and open it in VLC or mpv.",
            { reason: message },
          ),
          retry,
        );
        playback?.stop();
      },
      onFailed: (message) => fail(message, retry),
      startAt: (infohash, fileIndex) => resume.positionOf(infohash, fileIndex),
    });
    playback.run();
  }

  /**
   * Shows over the video why it does not play, with the next steps.
   *
   * @param {string} message
   * @param {() => void} retry
   */
  function fail(message, retry) {
    const steps = [action(t("Try again"), retry, "primary")];
    if (playedItem) steps.push(action(t("Next channel"), () => stepChannel(1)));
    if (playing) steps.push(action(t("Copy player link"), () => page.copyTs.click()));
    const health = make("a", { class: "button", href: "#/control/health" }, t("Check the engine"));
    health.addEventListener("click", () => controls.leaveTheatre());
    showFailure(page, message, [...steps, health, action(t("Close"), stop)]);
  }

  function stop() {
    controls.leaveTheatre();
    resume.leave();
    playback?.stop();
    home.reload();
    playing = undefined;
    starting = undefined;
    playedItem = undefined;
    page.stage.hidden = true;
  }

  /** @param {import("./playlist-source.js").ListItem} item */
  function playItem(item) {
    page.link.value = "";
    playedItem = item;
    showNow(item);
    play({ parameter: "item", value: String(item.id) }, {}, item.title);
    controls.enterTheatre();
  }

  /** @param {import("./playlist-source.js").ListItem | undefined} item */
  function showNow(item) {
    const [now] = item?.programmes ?? [];
    page.onNow.textContent =
      now === undefined ? "" : `${timeText(now.start)} – ${timeText(now.stop)}  ${now.title}`;
    page.onNow.hidden = now === undefined;
  }

  /**
   * Plays content that is not an item of the list.
   *
   * @param {Link | Uint8Array} source
   * @param {Choice} [choice]
   */
  function playOther(source, choice) {
    playedItem = undefined;
    showNow(undefined);
    play(source, choice);
  }

  /** @param {1 | -1} step */
  async function stepChannel(step) {
    const item = playedItem && (await playlist.neighbour(playedItem.id, step));
    if (item) playItem(item);
  }

  /** @param {number} number */
  async function showChannel(number) {
    const item = (await itemWithNumber(number)) ?? (await playlist.itemAt(number - 1));
    if (item) playItem(item);
    else showToast(t("There is no channel {number}", { number: String(number) }));
  }

  /**
   * @param {Link} link
   * @param {number} fileIndex
   */
  function offerLinks(link, fileIndex) {
    // Players can seek in the file itself; a live stream is MPEG-TS in either case.
    page.copyTs.onclick = () =>
      copy(appUrl(playbackPath(link, "getstream", { fileIndex, container: "raw" })));
    page.copyHls.onclick = () => copy(appUrl(playbackPath(link, "manifest.m3u8", { fileIndex })));
  }

  /** @param {string} text */
  async function copy(text) {
    if (await copyText(text)) showToast(t("Link copied"));
    else showLink(page, text);
  }

  /** @param {import("../parts/memory.js").RecentLink} played */
  async function remember(played) {
    await rememberLink(played);
    await refreshRecent();
  }

  async function refreshRecent() {
    showRecent(page, await recentLinks(), async ({ link, title }) => {
      const item = link.parameter === "item" ? await playlist.itemWithId(Number(link.value)) : undefined;
      if (item) {
        playItem(item);
        return;
      }
      page.link.value = link.parameter === "item" ? "" : link.value;
      playedItem = undefined;
      showNow(undefined);
      play(link, {}, link.parameter === "item" ? title : "");
    });
  }

  const playlist = connectPlaylist({
    live,
    play: playItem,
    copy: copyLink,
    notify: showToast,
    onImported: () => void home.reload(),
    onRights: (rights) => {
      page.add.hidden = rights !== "full";
      page.profile.hidden = rights !== "full";
      home.reload();
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
      showProblem(page, t("This is neither a magnet link, an infohash nor a web address."));
      return;
    }
    playOther(link);
  });
  page.stop.addEventListener("click", stop);
  page.forget.addEventListener("click", async () => {
    await forgetLinks();
    await refreshRecent();
  });
  const resume = new Resume(playlist.api, page.video);
  connectProfiles(page.profile, resume, () => home.reload());
  const home = new Home(byId("home", HTMLElement), {
    page: playlist.page,
    films: () => resume.list(),
    forget: (film) => resume.forget(film),
    playItem,
    async playFilm(film) {
      const choice = { fileIndex: film.file_index };
      const id = /^item:(\d+)$/.exec(film.link)?.[1];
      playedItem = id === undefined ? undefined : await itemOf(id);
      showNow(playedItem);
      const link = readLink(film.link) ?? hashLink(film.infohash);
      if (playedItem) play({ parameter: "item", value: String(playedItem.id) }, choice, playedItem.title);
      else play(link, choice);
      controls.enterTheatre();
    },
  });
  const itemOf = (/** @type {string} */ id) => playlist.itemWithId(Number(id)).catch(() => undefined);
  byId("guide-grid", HTMLButtonElement).addEventListener("click", () =>
    openGuideGrid({
      ...{ page: playlist.guidePage, play: playItem },
      record: page.add.hidden
        ? undefined
        : (item) => openRecordDialog(item, { api: playlist.api, notify: showToast }),
    }),
  );
  connectFiles(page, root, {
    addList: (file) => playlist.addFile(file),
    openSubtitles: async (file) => {
      if (playing === undefined) showProblem(page, t("Start a film first, then open its subtitles."));
      else await playback?.openSubtitles(file);
    },
    play(torrent) {
      page.link.value = "";
      playOther(torrent);
    },
  });
  connectGuide(page.guide, live, playlist.watchTasks);
  connectRecordings(page.recordings, live);
  connectScreens(page, {
    playing: () => playing && playback && { ...playing, atSeconds: playback.atSeconds },
    play({ link, fileIndex, atSeconds }) {
      page.link.value = link.value;
      playOther(link, { fileIndex, atSeconds });
    },
  });
  connectDevices(page.playOn, {
    live,
    playing: () => {
      const content = playing ?? starting;
      return content && { ...content, title: page.title.textContent ?? "" };
    },
    started: () => page.video.pause(),
  });
  window.addEventListener("pagehide", () => playback?.stop());
  refreshRecent();
  // Until here clicks would be lost, and the form would load the page again.
  root.inert = false;
  // The user may have moved the focus while the place was loading.
  if (document.activeElement === document.body) page.link.focus();
  return {
    show({ link }) {
      // A link fills the form but does not start playback, because any page may link here.
      if (link !== undefined) page.link.value = link;
    },
    // Playback continues while the user visits another place.
    hide() {},
  };
}
