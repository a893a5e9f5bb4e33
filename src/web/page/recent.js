// @ts-check
import { del, get, set } from "idb-keyval";

/**
 * A link that was played in this browser.
 *
 * @typedef {{ title: string, link: import("./link.js").Link, infohash: string }} RecentLink
 */

const KEY = "recent-links";
/** More than fit a glance are of no use. */
const MAX_LINKS = 8;

/**
 * The links played last, newest first.
 *
 * @returns {Promise<RecentLink[]>}
 */
export async function recentLinks() {
  return (await get(KEY)) ?? [];
}

/**
 * Puts a link first, instead of any other to the same content, and forgets the oldest.
 *
 * @param {RecentLink} played
 */
export async function rememberLink(played) {
  const others = (await recentLinks()).filter(({ infohash }) => infohash !== played.infohash);
  await set(KEY, [played, ...others].slice(0, MAX_LINKS));
}

/** Forgets them all. */
export async function forgetLinks() {
  await del(KEY);
}
