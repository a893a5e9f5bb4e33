// @ts-check
/**
 * What the page asks of the engine.
 *
 * @typedef {import("./link.js").Link} Link
 * @typedef {{ playback_url: string, stat_url: string, command_url: string, infohash: string, is_live: number }} Session
 * @typedef {{
 *   status: string, peers: number, speed_down: number, speed_up: number, downloaded: number, uploaded: number,
 *   total_progress: number, is_live: number, progress?: number, error_message?: string, selected_file_index: number,
 *   livepos?: { live_first: string, live_last: string, pos: string },
 *   buffering: { reason: string, text: string } | null
 * }} SessionInfo
 * @typedef {{ index: number, name: string, size: number, isPlayable: boolean }} ContentFile
 * @typedef {{ name: string, files: ContentFile[] }} Content
 * @typedef {{ fileIndex?: number | undefined, container?: "fmp4" | undefined, atSeconds?: number | undefined,
 *   audioLanguage?: string | undefined }} Choice
 */

/**
 * The address of a link for players; for an item of the playlist, of the item, since the engine alone knows its whole link.
 *
 * @param {Link | undefined} link
 * @param {"getstream" | "manifest.m3u8"} output
 * @param {Choice} choice
 */
export function playbackPath(link, output, choice) {
  const query = playbackQuery(link?.parameter === "item" ? undefined : link, choice);
  if (link?.parameter !== "item") return `/ace/${output}?${query}`;
  if (output === "manifest.m3u8") query.set("protocol", "hls");
  return `/play/0/${link.value}?${query}`;
}

/** The engine said no; its message is for the user. */
export class EngineError extends Error {}

/**
 * The query of a playback endpoint.
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
 * Starts playing a link, or the bytes of a transport file, over HLS.
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
 * @param {Session} session
 * @param {AbortSignal} signal
 * @returns {Promise<SessionInfo>}
 */
export async function sessionInfo(session, signal) {
  return envelope(await fetch(ownPath(session.stat_url), { signal }));
}

/**
 * Moves a session within its live stream.
 *
 * @param {Session} session
 * @param {number} at UNIX seconds; -1 for live
 */
export async function liveSeek(session, at) {
  await envelope(await fetch(`${ownPath(session.command_url)}?method=liveseek&pos=${at}`));
}

/**
 * Ends a session; also while the page is being left. One that has ended already is fine.
 *
 * @param {Session} session
 */
export async function stopSession(session) {
  await fetch(`${ownPath(session.command_url)}?method=stop`, { keepalive: true });
}

/**
 * The files of content; waits until they are known.
 *
 * @param {string} infohash
 * @param {AbortSignal} signal
 * @returns {Promise<Content>}
 */
export async function contentOf(infohash, signal) {
  const response = await fetch(`/app/content/${infohash}`, { signal });
  if (!response.ok) throw await problemOf(response);
  return response.json();
}

/**
 * The languages of a file's sound, the usual one first, none for a stream; waits until they are known.
 *
 * @param {string} infohash
 * @param {number} fileIndex
 * @param {AbortSignal} signal
 * @returns {Promise<string[]>}
 */
export async function audioLanguages(infohash, fileIndex, signal) {
  const response = await fetch(`/app/content/${infohash}/${fileIndex}/languages`, { signal });
  // A stream has no file whose tracks are known before it plays; its manifest says what is wrong, if anything is.
  if (response.status === 404) return [];
  if (!response.ok) throw await problemOf(response);
  return response.json();
}

/**
 * Waits until the session's manifest can be had; throws what the engine says where it cannot.
 *
 * @param {Session} session
 * @param {AbortSignal} signal
 */
export async function awaitManifest(session, signal) {
  const response = await fetch(ownPath(session.playback_url), { signal });
  if (!response.ok) throw await problemOf(response);
  await response.text();
}

/**
 * URLs are absolute and made from the Host we asked with; the path alone keeps us on this very origin.
 *
 * @param {string} url
 */
export function ownPath(url) {
  const { pathname, search } = new URL(url, location.href);
  return pathname + search;
}

/** @param {Response} response */
async function envelope(response) {
  /** @type {{ response: any, error: string | { message: string } | null }} */
  let body;
  try {
    body = await response.json();
  } catch {
    throw new EngineError(`The engine answered ${response.status} and nothing that can be read`);
  }
  const { error } = body;
  if (error !== null && error !== undefined)
    throw new EngineError(typeof error === "string" ? error : error.message);
  return body.response;
}

/** @param {Response} response */
async function problemOf(response) {
  const text = (await response.text()).trim();
  return new EngineError(text === "" ? `The engine answered ${response.status}` : text.slice(0, 500));
}

/** @param {Uint8Array} bytes */
function base64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}
