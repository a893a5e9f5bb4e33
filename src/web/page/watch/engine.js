// @ts-check
import { ownPath } from "../parts/place.js";
import { t } from "../parts/text.js";

/**
 * Requests of the page to the playback endpoints and session URLs.
 *
 * @typedef {import("../parts/link.js").Link} Link
 * @typedef {{ playback_url: string, stat_url: string, command_url: string, infohash: string, is_live: number }} Session
 * @typedef {{
 *   status: string, peers: number, speed_down: number, speed_up: number, downloaded: number, uploaded: number,
 *   total_progress: number, is_live: number, progress?: number, error_message?: string, selected_file_index: number,
 *   livepos?: { live_first: string, live_last: string, pos: string },
 *   channel?: import("./channel-sources.js").Channel,
 *   buffering: { reason: string, text: string } | null
 * }} SessionInfo
 * @typedef {{ index: number, name: string, size: number, isPlayable: boolean }} ContentFile
 * @typedef {{ name: string, files: ContentFile[], order: number[] }} Content `order`: the files to play one after another
 * @typedef {{ fileIndex?: number | undefined, container?: "fmp4" | "raw" | undefined, atSeconds?: number | undefined,
 *   audioLanguage?: string | undefined }} Choice
 */

/**
 * Returns the path that plays a link. For a playlist item it contains only the id, because the page does not know the link.
 *
 * @param {Link | undefined} link
 * @param {"getstream" | "manifest.m3u8"} output
 * @param {Choice} choice
 */
export function playbackPath(link, output, choice) {
  const query = playbackQuery(link?.parameter === "item" ? undefined : link, choice);
  if (link?.parameter !== "item") return `ace/${output}?${query}`;
  if (output === "manifest.m3u8") query.set("protocol", "hls");
  return `play/0/${link.value}?${query}`;
}

/** An error response of the engine; its message is shown to the user. */
export class EngineError extends Error {}

/**
 * Builds the query of a playback endpoint.
 *
 * @param {Link | undefined} link
 * @param {Choice} choice
 */
function playbackQuery(link, { fileIndex, container, audioLanguage } = {}) {
  const query = new URLSearchParams();
  if (link !== undefined) query.set(link.parameter, link.value);
  if (fileIndex !== undefined) query.set("_idx", String(fileIndex));
  if (container !== undefined) query.set("container", container);
  if (audioLanguage !== undefined) query.set("preferred_audio_language", audioLanguage);
  return query;
}

/**
 * Starts an HLS session for a link or the bytes of a transport file. Throws `EngineError`.
 *
 * @param {Link | Uint8Array} source
 * @param {string} playerId
 * @param {Choice} choice
 * @returns {Promise<Session>}
 */
export async function startSession(source, playerId, choice) {
  const isFile = source instanceof Uint8Array;
  const path = playbackPath(isFile ? undefined : source, "manifest.m3u8", choice);
  const start = new URLSearchParams({ format: "json", pid: playerId });
  if (!plays("ac-3", "ec-3", "dtsc", "mp4a.40.33", "mp3")) start.set("transcode_audio", "1");
  const init = isFile
    ? {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ transport_file_data: base64(source) }),
      }
    : {};
  return envelope(await fetch(`${path}&${start}`, init));
}

/**
 * Returns true if this browser decodes audio with all these codecs, as they are in `CODECS` attributes.
 *
 * @param {string[]} codecs
 */
function plays(...codecs) {
  const isSupported = (/** @type {string} */ type) =>
    "MediaSource" in window
      ? MediaSource.isTypeSupported(type)
      : document.createElement("video").canPlayType(type) !== "";
  return codecs.every((codec) => isSupported(`audio/mp4; codecs="${codec}"`));
}

/**
 * Seeks in a live stream.
 *
 * @param {Session} session
 * @param {number} at UNIX seconds; -1 for the live edge
 */
export async function liveSeek(session, at) {
  await envelope(await fetch(`${ownPath(session.command_url)}?method=liveseek&pos=${at}`));
}

/**
 * Stops a session, also while the browser leaves the page. Does nothing if it has already ended.
 *
 * @param {Session} session
 */
export async function stopSession(session) {
  await fetch(`${ownPath(session.command_url)}?method=stop`, { keepalive: true });
}

/**
 * Returns the files of content, once they are known.
 *
 * @param {string} infohash
 * @param {AbortSignal} signal
 * @returns {Promise<Content>}
 */
export async function contentOf(infohash, signal) {
  const response = await fetch(`app/content/${infohash}`, { signal });
  if (!response.ok) throw await readError(response);
  return response.json();
}

/**
 * The languages of the audio tracks; the tracks in languages of which none can be decoded; the subtitles that are not text.
 *
 * @typedef {{ language: string, codec: string }} NamedTrack
 * @typedef {{ languages: string[], silent: NamedTrack[], opaque: NamedTrack[] }} Sound
 */

/** The tracks of content that has none in a file.
 * @type {Sound} */
export const NO_SOUND = { languages: [], silent: [], opaque: [] };

/**
 * Returns the audio languages of a file, default first, once they are known; of a stream only the sound that cannot be decoded.
 *
 * @param {string} infohash
 * @param {number} fileIndex
 * @param {AbortSignal} signal
 * @returns {Promise<Sound>}
 */
export async function soundOf(infohash, fileIndex, signal) {
  const response = await fetch(`app/content/${infohash}/${fileIndex}/languages`, { signal });
  // If anything is wrong, the request for the manifest reports the error.
  if (response.status === 404) return NO_SOUND;
  if (!response.ok) throw await readError(response);
  return response.json();
}

/**
 * Waits until the session can be played. Returns the URL to play, and if it is a file, such as music, instead of a manifest. Throws
 * `EngineError` if the start fails.
 *
 * @param {Session} session
 * @param {AbortSignal} signal
 */
export async function awaitManifest(session, signal) {
  const response = await fetch(ownPath(session.playback_url), { signal });
  if (!response.ok) throw await readError(response);
  const isFile = !/mpegurl/.test(response.headers.get("content-type") ?? "");
  if (isFile) await response.body?.cancel();
  else await response.text();
  return { url: response.url, isFile };
}

/** @param {Response} response */
async function envelope(response) {
  /** @type {{ response: any, error: string | { message: string } | null }} */
  let body;
  try {
    body = await response.json();
  } catch {
    throw new EngineError(
      t("The engine sent an invalid response (status {status})", { status: String(response.status) }),
    );
  }
  const { error } = body;
  if (error !== null && error !== undefined)
    throw new EngineError(typeof error === "string" ? error : error.message);
  return body.response;
}

/**
 * Reads the text of an error response.
 *
 * @param {Response} response
 */
export async function readError(response) {
  const text = (await response.text()).trim();
  return new EngineError(
    text === ""
      ? t("The engine answered with status {status}", { status: String(response.status) })
      : text.slice(0, 500),
  );
}

/** @param {Uint8Array} bytes */
function base64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

/** Returns a random id. `crypto.randomUUID` exists only on secure pages. */
export function randomId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
