// @ts-check

import { options } from "../parts/dom.js";
import { languageName } from "../parts/figures.js";
import { t } from "../parts/text.js";
import { showQualities } from "./quality-menu.js";
import { addSubtitleFile } from "./subtitle-file.js";

/** The value of the menu entry without subtitles. */
const OFF = "off";
/** The values of the menu entries for pictures begin with this. */
const PICTURE = "picture ";
/** The value of the menu entry that opens a file. */
const OPEN = "open";
/** Names of channel layouts that users know. */
const LAYOUTS = new Map([
  ["6", "5.1"],
  ["8", "7.1"],
]);
/** Subtitles that the engine does not convert to text. */
const OPAQUE_NAMES = new Map([
  ["dvb_subtitle", "DVB"],
  ["dvb_teletext", t("Teletext")],
]);

/**
 * The menus for quality, audio and subtitles below the picture. Choices are remembered by language, for all content.
 */
export class TrackMenus {
  #page;
  #player;
  #sound;
  #onChosen;
  #signal;
  #opensFiles;
  #pictures;
  /** @type {import("./picture-subtitles.js").PictureTrack[]} */
  #filmPictures;

  /**
   * @param {import("./view.js").Elements} page
   * @param {import("./player.js").Player} player
   * @param {import("./engine.js").Sound} sound
   * @param {PictureSubtitles} pictures
   * @param {{ chosen: string | undefined, opensFiles: boolean, pictureTracks: import("./picture-subtitles.js").PictureTrack[],
   *   signal: AbortSignal, onChosen: OnChosen, onLanguage: (language: string) => void }} options
   *   `opensFiles`: the menu offers to open a subtitle file; `onLanguage` starts again with another audio language, if the player has no tracks to choose from
   */
  constructor(
    page,
    player,
    sound,
    pictures,
    { chosen, opensFiles, pictureTracks, signal, onChosen, onLanguage },
  ) {
    this.#pictures = pictures;
    this.#filmPictures = pictureTracks;
    this.#page = page;
    this.#player = player;
    this.#sound = { ...sound, chosen };
    this.#onChosen = onChosen;
    this.#signal = signal;
    this.#opensFiles = opensFiles;
    page.quality.addEventListener("change", () => player.chooseQuality(Number(page.quality.value)), {
      signal,
    });
    page.audio.addEventListener("change", () => this.#chooseAudio(onLanguage), { signal });
    page.subtitles.addEventListener("change", () => this.#chooseSubtitles(), { signal });
    this.update();
  }

  /** The tracks of a film are known at the start, those of a live stream by its manifest. */
  get #pictureTracks() {
    return this.#filmPictures.length > 0 ? this.#filmPictures : (this.#player.pictureTracks?.() ?? []);
  }

  /** Shows the current tracks. */
  update() {
    showQualities(this.#page, this.#player.qualities());
    const { audio, audioLabel, subtitles, subtitlesLabel, subtitleDelayGroup } = this.#page;
    const tracks = this.#player.audioTracks();
    const byIndex = tracks.map((track, index) => /** @type {const} */ ([String(index), trackText(track)]));
    const byLanguage = this.#sound.languages.map(
      (language) => /** @type {const} */ ([language, languageName(language)]),
    );
    const isSwitched = tracks.length > 1;
    const chosen = isSwitched ? chosenOf(tracks) : this.#sound.chosen;
    audio.replaceChildren(...options(isSwitched ? byIndex : byLanguage, chosen));
    audioLabel.hidden = audio.options.length < 2;

    const texts = this.#player.subtitleTracks();
    const choices = texts.map((track, index) => /** @type {const} */ ([String(index), trackText(track)]));
    const opaque = this.#sound.opaque.map(({ language, codec }) => {
      const name = OPAQUE_NAMES.get(codec) ?? codec;
      const text = `${languageName(language)} – ${t("{name} subtitles are not supported in browsers", { name })}`;
      return Object.assign(document.createElement("option"), { textContent: text, disabled: true });
    });
    const drawn = this.#pictureTracks.map(
      (track, index) => /** @type {const} */ ([PICTURE + index, pictureText(track)]),
    );
    const { chosen: picture } = this.#pictures;
    const shown = picture ? PICTURE + this.#pictureTracks.indexOf(picture) : chosenOf(texts);
    /** @type {(readonly [string, string])[]} */
    const open = this.#opensFiles ? [[OPEN, t("Open a file…")]] : [];
    subtitles.replaceChildren(
      ...options([[OFF, t("Off")], ...choices, ...drawn, ...open], shown ?? OFF),
      ...opaque,
    );
    subtitlesLabel.hidden = subtitles.options.length < 2;
    subtitleDelayGroup.hidden = shown === undefined;
  }

  /** @param {(language: string) => void} onLanguage */
  #chooseAudio(onLanguage) {
    const { value } = this.#page.audio;
    const track = this.#player.audioTracks()[Number(value)];
    if (this.#player.audioTracks().length < 2) {
      this.#onChosen("audio", value);
      onLanguage(value);
    } else if (track) {
      this.#onChosen("audio", track.language);
      this.#player.chooseAudio(Number(value));
    }
  }

  /**
   * Shows a subtitle file of the user. Throws an error for the user.
   *
   * @param {File} file
   */
  async open(file) {
    if (!this.#opensFiles) throw new Error(t("Subtitle files can be shown with films only."));
    this.#pictures.choose(undefined);
    await addSubtitleFile(this.#page.video, file, this.#signal);
    this.#player.chooseSubtitles(this.#player.subtitleTracks().findIndex(({ isFile }) => isFile));
    this.update();
  }

  #chooseSubtitles() {
    const { value } = this.#page.subtitles;
    if (value === OPEN) {
      this.update();
      this.#page.subtitleFile.click();
      return;
    }
    const picture = value.startsWith(PICTURE) && this.#pictureTracks[Number(value.slice(PICTURE.length))];
    this.#pictures.choose(picture || undefined);
    if (picture) {
      this.#player.chooseSubtitles(-1);
      this.#player.stayBehind?.();
      this.update();
      return;
    }
    const track = value === OFF ? undefined : this.#player.subtitleTracks()[Number(value)];
    if (!track?.isFile) this.#onChosen("subtitles", track?.language ?? "");
    this.#player.chooseSubtitles(value === OFF ? -1 : Number(value));
  }
}

/**
 * @typedef {import("./player.js").Track} Track
 * @typedef {import("./picture-subtitles.js").PictureSubtitles} PictureSubtitles
 * @typedef {(kind: import("../parts/memory.js").TrackKind, language: string) => void} OnChosen called with the language of the user's choice; empty for no
 *   subtitles
 */

/** @param {readonly Track[]} tracks */
function chosenOf(tracks) {
  const index = tracks.findIndex(({ isChosen }) => isChosen);
  return index < 0 ? undefined : String(index);
}

/** @param {import("./picture-subtitles.js").PictureTrack} track */
function pictureText({ language, title }) {
  return title ? `${languageName(language)} – ${title}` : languageName(language);
}

/** @param {Track} track */
function trackText({ language, name, channels }) {
  const layout = LAYOUTS.get(channels ?? "");
  const own = languageName(language || "und");
  // The engine names a track without a title by its language, in English, and numbers equal names.
  const [, title = "", number = ""] = /^(.*?)( \(\d+\))?$/.exec(name) ?? [];
  const isPlain = language !== "" && title === languageName(language, "en");
  const text = isPlain ? own + number : language === "" ? name : `${own} – ${name}`;
  return layout ? `${text}, ${layout}` : text;
}
