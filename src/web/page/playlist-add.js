// @ts-check
import { linkTitle, readLink } from "./link.js";

/**
 * @typedef {import("./api.js").EngineApi} EngineApi
 * @typedef {{
 *   api: EngineApi,
 *   say: (text: string) => void,
 *   added: () => void,
 *   importing: (taskId: number) => void,
 *   subscribe: (url: string) => void,
 * }} AddParts
 */

/** The engine takes no larger uploads. */
const MAX_UPLOAD_BYTES = 50 * 1024 * 1024;
const LIST_NAME = /\.(?:m3u8?|m3u8?\.gz|gz|txt)$/i;

/**
 * Adds what was pasted. The address of a playlist is no item: it is offered as a subscription.
 *
 * @param {string} text
 * @param {AddParts} parts
 */
export async function addLink(text, { api, say, added, subscribe }) {
  const link = readLink(text);
  if (link === undefined) throw new Error("This is neither a magnet link, an infohash nor a web address.");
  const content =
    link.parameter === "url" ? await urlContent(api, link.value) : { [link.parameter]: link.value };
  if (content === undefined) {
    subscribe(link.value);
    return;
  }
  await api.call("playlist_add_item", { title: linkTitle(link), ...content });
  say("Added to the playlist");
  added();
}

/**
 * What is at a URL, in the parameters of a new item; undefined where it is a list of channels.
 *
 * @param {EngineApi} api
 * @param {string} url
 * @returns {Promise<Record<string, string | number> | undefined>}
 */
async function urlContent(api, url) {
  const { content_type, title, is_live } = await api.call("analyze_content", { query: url });
  if (content_type === "playlist") return undefined;
  const named = { ...(title ? { title: title.slice(0, 300) } : {}), is_live };
  if (content_type === "transport_file") return { ...named, url };
  if (content_type === "hls" || content_type === "hls_vode") return { ...named, hls_manifest_url: url };
  return /\.mpd(?:[?#]|$)/i.test(url) ? { ...named, dash_manifest_url: url } : { ...named, video_url: url };
}

/**
 * Adds files: playlists are imported in the background, transport files become items.
 *
 * @param {readonly File[]} files
 * @param {AddParts} parts
 */
export async function addFiles(files, { api, say, added, importing }) {
  let count = 0;
  for (const file of files) {
    if (file.size > MAX_UPLOAD_BYTES) throw new Error(`${file.name} is larger than 50 MB`);
    if (await isList(file)) {
      const { task_id } = await api.call("playlist_import", { file, name: file.name.slice(0, 128) });
      importing(task_id);
    } else {
      await api.call("playlist_add_item", { file });
      count++;
    }
  }
  if (count === 0) return;
  say(count === 1 ? "Added to the playlist" : `${count} added to the playlist`);
  added();
}

/**
 * A transport file begins with a dictionary (BEP 3); by their names alone lists are hard to tell.
 *
 * @param {File} file
 */
export async function isList(file) {
  if (LIST_NAME.test(file.name)) return true;
  if (/\.torrent$/i.test(file.name)) return false;
  return !/^d\d+:/.test(await file.slice(0, 16).text());
}
