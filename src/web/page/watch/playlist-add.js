// @ts-check
import { linkTitle, readLink } from "../parts/link.js";
import { t } from "../parts/text.js";

/**
 * @typedef {import("../parts/api.js").EngineApi} EngineApi
 * @typedef {{
 *   api: EngineApi,
 *   notify: (text: string) => void,
 *   added: () => void,
 *   importing: (taskId: number) => void,
 *   subscribe: (url: string) => void,
 * }} AddOptions
 */

/** The upload limit of the engine. */
const MAX_UPLOAD_BYTES = 50_000_000;
const LIST_NAME = /\.(?:m3u8?|m3u8?\.gz|gz|txt)$/i;

/**
 * Adds a pasted link to the playlist. For the address of a playlist it opens the subscription form instead.
 *
 * @param {string} text
 * @param {AddOptions} options
 */
export async function addLink(text, { api, notify, added, subscribe }) {
  const link = readLink(text);
  if (link === undefined) throw new Error(t("This is neither a magnet link, an infohash nor a web address."));
  const content =
    link.parameter === "url" ? await urlContent(api, link.value) : { [link.parameter]: link.value };
  if (content === undefined) {
    subscribe(link.value);
    return;
  }
  await api.call("playlist_add_item", { title: linkTitle(link), ...content });
  notify(t("Added to the playlist"));
  added();
}

/**
 * Analyzes a URL and returns the parameters of a new item; undefined if the URL is a playlist.
 *
 * @param {EngineApi} api
 * @param {string} url
 * @returns {Promise<Record<string, string | number> | undefined>}
 */
async function urlContent(api, url) {
  const { content_type, title, is_live } = await api.call("analyze_content", { query: url });
  if (content_type === "playlist") return undefined;
  const details = { ...(title ? { title: title.slice(0, 300) } : {}), is_live };
  if (content_type === "transport_file") return { ...details, url };
  if (content_type === "hls" || content_type === "hls_vode") return { ...details, hls_manifest_url: url };
  return /\.mpd(?:[?#]|$)/i.test(url)
    ? { ...details, dash_manifest_url: url }
    : { ...details, video_url: url };
}

/**
 * Adds files: imports playlists in the background, and adds transport files as items.
 *
 * @param {readonly File[]} files
 * @param {AddOptions} options
 */
export async function addFiles(files, { api, notify, added, importing }) {
  let count = 0;
  for (const file of files) {
    if (file.size > MAX_UPLOAD_BYTES)
      throw new Error(t("{name} is larger than 50 MB, the upload limit.", { name: file.name }));
    if (await isList(file)) {
      const { task_id } = await api.call("playlist_import", { file, name: file.name.slice(0, 128) });
      importing(task_id);
    } else {
      await api.call("playlist_add_item", { file });
      count++;
    }
  }
  if (count === 0) return;
  notify(count === 1 ? t("Added to the playlist") : t("{count} items added to the playlist", { count }));
  added();
}

/**
 * Returns whether a file is a playlist. If its name does not show that, checks that it is not a transport file, which
 * begins with a bencoded dictionary (BEP 3).
 *
 * @param {File} file
 */
export async function isList(file) {
  if (LIST_NAME.test(file.name)) return true;
  if (/\.torrent$/i.test(file.name)) return false;
  return !/^d\d+:/.test(await file.slice(0, 16).text());
}
