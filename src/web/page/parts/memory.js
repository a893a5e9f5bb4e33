// @ts-check
import { createStore, del, get, set, update } from "idb-keyval";

/**
 * A link that was played in this browser.
 *
 * @typedef {{ title: string, link: import("./link.js").Link, infohash: string }} RecentLink
 */

/** Everything that the page remembers in this browser. It opens with the first access, and fails if the browser forbids it. */
const memory = createStore("sluice-page", "memory");

const LINKS = "recent-links";
const TOKEN = "access-token";

const MAX_LINKS = 8;
/** Longer links, such as those with many trackers, are played but not remembered. */
const MAX_LINK_CHARACTERS = 6000;

/**
 * Returns the links played last, newest first.
 *
 * @returns {Promise<RecentLink[]>}
 */
export async function recentLinks() {
  return (await get(LINKS, memory)) ?? [];
}

/**
 * Stores a link as the newest one. Replaces a link to the same content, and deletes the oldest beyond the limit.
 *
 * @param {RecentLink} played
 */
export async function rememberLink(played) {
  if (JSON.stringify(played).length > MAX_LINK_CHARACTERS) return;
  /** @param {RecentLink[] | undefined} links */
  const withNewest = (links = []) => {
    const others = links.filter(({ infohash }) => infohash !== played.infohash);
    return [played, ...others].slice(0, MAX_LINKS);
  };
  await update(LINKS, withNewest, memory);
}

/** Deletes all links. */
export async function forgetLinks() {
  await del(LINKS, memory);
}

/** @typedef {"audio" | "subtitles"} TrackKind */

/**
 * Remembers the language of the audio or the subtitles that the user chose, for all content.
 *
 * @param {TrackKind} kind
 * @param {string} language a tag such as `en`; empty for none
 */
export async function rememberLanguage(kind, language) {
  await set(`${kind}-language`, language, memory);
}

/**
 * Returns the language that the user chose last; undefined if there is none.
 *
 * @param {TrackKind} kind
 * @returns {Promise<string | undefined>}
 */
export async function rememberedLanguage(kind) {
  return get(`${kind}-language`, memory);
}

/**
 * Returns the access token that the user entered; undefined if there is none.
 *
 * @returns {Promise<string | undefined>}
 */
export async function rememberedToken() {
  return get(TOKEN, memory);
}

/** @param {string | undefined} token undefined deletes it */
export async function rememberToken(token) {
  await (token === undefined ? del(TOKEN, memory) : set(TOKEN, token, memory));
}
