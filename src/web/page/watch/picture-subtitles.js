// @ts-check
import { readError } from "./engine.js";

/** Pictures are loaded in pieces of this length: the one that is shown, the one before it, and the next. */
const PIECE_SECONDS = 10;
/** Loaded pieces that are kept. */
const KEPT_PIECES = 12;
/** A piece that could not be loaded is requested again after this time. */
const RETRY_MS = 3_000;

/**
 * @typedef {{ x: number, y: number, width: number, height: number, palette: string, runs: string }} Part
 * @typedef {{ start: number, forced: boolean, width: number, height: number, parts: Part[] }} State
 * @typedef {{ language: string, title: string | null, codec: string, forced: boolean, json?: string,
 *   stateAt?: (at: number) => State | undefined }} PictureTrack `json`: the address of the pictures of a film; a live stream has `stateAt`
 */

/** Draws subtitles that are pictures (PGS, VobSub, DVB) over the video. */
export class PictureSubtitles {
  #video;
  #canvas;
  #signal;
  /** @type {PictureTrack | undefined} */
  #track;
  /** @type {Map<number, State[] | undefined>} by piece; undefined while it is loaded */
  #pieces = new Map();
  /** The state that is drawn, and the size of the canvas at that time. */
  #drawn = "";
  #frame = 0;
  #delay;

  /**
   * @param {import("./view.js").Elements} page
   * @param {AbortSignal} signal ends the playback
   */
  constructor({ video, pictures: canvas, subtitleDelay }, signal) {
    this.#video = video;
    this.#canvas = canvas;
    this.#delay = subtitleDelay;
    this.#signal = signal;
    signal.addEventListener("abort", () => this.choose(undefined), { once: true });
  }

  get chosen() {
    return this.#track;
  }

  /** @param {PictureTrack | undefined} track undefined for none */
  choose(track) {
    this.#track = track;
    this.#pieces.clear();
    this.#canvas.hidden = track === undefined;
    this.#drawn = "";
    cancelAnimationFrame(this.#frame);
    if (track) this.#follow();
    else this.#clear();
  }

  #follow() {
    this.#frame = requestAnimationFrame(() => this.#follow());
    // The value that `SubtitleDelay` shows.
    const delay = Number.parseFloat(this.#delay.value.replace("−", "-")) || 0;
    const at = this.#video.currentTime - delay;
    if (this.#track?.stateAt) {
      this.#draw(this.#track.stateAt(at));
      return;
    }
    const piece = Math.max(0, Math.floor(at / PIECE_SECONDS));
    for (const next of [piece, piece - 1, piece + 1]) if (next >= 0) this.#load(next);
    this.#draw(this.#stateAt(at, piece));
  }

  /** @param {number} piece */
  async #load(piece) {
    const track = this.#track;
    if (!track || this.#pieces.has(piece)) return;
    const pieces = this.#pieces;
    pieces.set(piece, undefined);
    for (const old of pieces.keys()) if (pieces.size > KEPT_PIECES) pieces.delete(old);
    const query = new URLSearchParams({
      from: String(piece * PIECE_SECONDS),
      to: String((piece + 1) * PIECE_SECONDS),
    });
    try {
      const response = await fetch(`${track.json}?${query}`, { signal: this.#signal });
      if (!response.ok) throw await readError(response);
      const { pictures } = await response.json();
      if (this.#track === track) pieces.set(piece, pictures);
    } catch {
      setTimeout(() => this.#track === track && pieces.delete(piece), RETRY_MS);
    }
  }

  /**
   * @param {number} at
   * @param {number} piece
   * @returns {State | undefined}
   */
  #stateAt(at, piece) {
    const states = [...(this.#pieces.get(piece - 1) ?? []), ...(this.#pieces.get(piece) ?? [])];
    return states.sort((a, b) => a.start - b.start).findLast(({ start }) => start <= at);
  }

  /** @param {State | undefined} state */
  #draw(state) {
    const { clientWidth, clientHeight, videoWidth, videoHeight } = this.#video;
    const scale = window.devicePixelRatio;
    const [width, height] = [Math.round(clientWidth * scale), Math.round(clientHeight * scale)];
    const shown = `${state?.start} ${state?.parts.length} ${width} ${height} ${videoWidth}`;
    if (shown === this.#drawn) return;
    this.#drawn = shown;
    this.#canvas.width = width;
    this.#canvas.height = height;
    const context = this.#canvas.getContext("2d");
    if (!state || !context || videoWidth === 0) return;
    // The screen of the subtitles is as wide as the picture; the picture may be without its black bars.
    const pictureScale = Math.min(width / videoWidth, height / videoHeight);
    const zoom = (videoWidth * pictureScale) / state.width;
    const left = (width - state.width * zoom) / 2;
    const top = (height - state.height * zoom) / 2;
    for (const part of state.parts) {
      const y = Math.max(0, Math.min(top + part.y * zoom, height - part.height * zoom));
      context.drawImage(pictureOf(part), left + part.x * zoom, y, part.width * zoom, part.height * zoom);
    }
  }

  #clear() {
    this.#canvas.width = 0;
  }
}

/** @param {Part} part */
function pictureOf({ width, height, palette, runs }) {
  const colours = new Uint32Array(bytesOf(palette).buffer);
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const coded = bytesOf(runs);
  for (let from = 0, at = 0; at + 1 < coded.length; at += 2) {
    const count = coded[at] ?? 0;
    pixels.fill(colours[coded[at + 1] ?? 0] ?? 0, from, from + count);
    from += count;
  }
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  canvas.getContext("2d")?.putImageData(image, 0, 0);
  return canvas;
}

/** @param {string} base64 */
function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/**
 * Returns the tracks of pictures of a film.
 *
 * @param {string} infohash
 * @param {number} fileIndex
 * @param {AbortSignal} signal
 * @returns {Promise<PictureTrack[]>}
 */
export async function pictureTracksOf(infohash, fileIndex, signal) {
  const response = await fetch(`subtitles/${infohash}/${fileIndex}`, { signal });
  if (!response.ok) return [];
  const { pictures } = await response.json();
  return pictures;
}
