// @ts-check
import { ownPath } from "../parts/place.js";

/** The `DATA-ID` of session data that describes a track; its number follows. */
const ID = "sluice.pictures.";
/** Loaded segments that are kept. */
const KEPT_SEGMENTS = 12;
/** A segment that could not be loaded is requested again after this time. */
const RETRY_MS = 3_000;

/**
 * @typedef {import("./picture-subtitles.js").State} State
 * @typedef {import("./picture-subtitles.js").PictureTrack} PictureTrack
 */

/**
 * Finds the subtitles of a live stream that are pictures in its master manifest. Their segments are requested beside those of the stream.
 *
 * @param {typeof import("hls.js").default} Hls
 * @param {import("hls.js").default} hls
 * @param {() => void} onTracks called when the tracks are known
 * @returns {() => PictureTrack[]}
 */
export function livePictures(Hls, hls, onTracks) {
  /** @type {PictureTrack[]} */
  let tracks = [];
  let listed = "";
  hls.on(Hls.Events.MANIFEST_LOADED, (_event, { sessionData }) => {
    const described = Object.entries(sessionData ?? {}).filter(([id]) => id.startsWith(ID));
    // The manifest of a stream that goes on after an interruption: the chosen track stays.
    const key = described.map(([id, { VALUE, LANGUAGE }]) => `${id} ${VALUE} ${LANGUAGE}`).join("\n");
    if (key === listed) return;
    listed = key;
    tracks = described.map(([id, data]) => {
      const [codec = "", title = null] = (data.VALUE ?? "").split(",");
      const segments = new PictureSegments(hls, Number(id.slice(ID.length)));
      return {
        ...{ codec, title, language: data.LANGUAGE ?? "und", forced: false },
        stateAt: (/** @type {number} */ at) => segments.stateAt(at),
      };
    });
    onTracks();
  });
  return () => tracks;
}

/** The pictures of one track, by segment. */
class PictureSegments {
  #hls;
  #number;
  /** @type {Map<string, State[] | undefined>} by URL; undefined while it is loaded. Times begin with the segment. */
  #loaded = new Map();

  /**
   * @param {import("hls.js").default} hls
   * @param {number} number
   */
  constructor(hls, number) {
    this.#hls = hls;
    this.#number = number;
  }

  /**
   * @param {number} at
   * @returns {State | undefined}
   */
  stateAt(at) {
    const fragments = this.#hls.latestLevelDetails?.fragments ?? [];
    const index = fragments.findIndex(({ start, duration }) => start <= at && at < start + duration);
    const shown = fragments[index];
    const next = fragments[index + 1];
    if (!shown) return undefined;
    for (const { url } of next ? [shown, next] : [shown]) this.#load(url);
    const state = this.#loaded.get(shown.url)?.findLast(({ start }) => shown.start + start <= at);
    return state && { ...state, start: shown.start + state.start };
  }

  /** @param {string} url */
  async #load(url) {
    if (this.#loaded.has(url)) return;
    this.#loaded.set(url, undefined);
    for (const old of this.#loaded.keys()) if (this.#loaded.size > KEPT_SEGMENTS) this.#loaded.delete(old);
    try {
      const place = ownPath(url).replace(/(?:\.v\d)?\.(?:ts|m4s)(?=$|\?)/, `.s${this.#number}.vtt`);
      const response = await fetch(place);
      if (!response.ok) throw new Error(String(response.status));
      this.#loaded.set(url, statesOf(await response.text()));
    } catch {
      setTimeout(() => this.#loaded.delete(url), RETRY_MS);
    }
  }
}

/**
 * @param {string} text WebVTT whose cues are JSON
 * @returns {State[]}
 */
function statesOf(text) {
  const cues = /^([\d:.]+) --> ([\d:.]+)\n(.+)$/gm;
  return [...text.matchAll(cues)].flatMap(([, from = "", to = "", json = ""]) => {
    const state = JSON.parse(json);
    return [
      { ...state, start: secondsOf(from) },
      { ...state, start: secondsOf(to), parts: [] },
    ];
  });
}

/** @param {string} time such as `00:00:01.500` */
function secondsOf(time) {
  return time.split(":").reduce((sum, part) => 60 * sum + Number(part), 0);
}
