// @ts-check
import { openKeyValueStore } from "./kv.js";

/**
 * A link that was played in this browser.
 *
 * @typedef {{ title: string, link: import("./link.js").Link, infohash: string }} RecentLink
 * @typedef {import("./kv.js").KeyValueStore} KeyValueStore
 */

const STORE = "sluice";
const KEY = "recent-links";
const MAX_LINKS = 8;
/** Longer links are played but not remembered, because all links must fit in one record. */
const MAX_LINK_CHARACTERS = 6000;

/**
 * Returns the links played last, newest first.
 *
 * @returns {Promise<RecentLink[]>}
 */
export async function recentLinks() {
  return withRecords(async (records) => (await linksIn(records)) ?? []);
}

/**
 * Stores a link as the newest one. Replaces a link to the same content, and deletes the oldest beyond the limit.
 *
 * @param {RecentLink} played
 */
export async function rememberLink(played) {
  if (JSON.stringify(played).length > MAX_LINK_CHARACTERS) return;
  await withRecords(async (records) => {
    for (;;) {
      const kept = await linksIn(records);
      const others = (kept ?? []).filter(({ infohash }) => infohash !== played.infohash);
      const links = [played, ...others].slice(0, MAX_LINKS);
      // Retries if another page of this browser has changed the record meanwhile.
      if (await records.commit({ check: [[KEY, kept]], set: [[KEY, links]] })) return;
    }
  });
}

/** Deletes all links. */
export async function forgetLinks() {
  await withRecords((records) => records.commit({ delete: [KEY] }));
}

/**
 * @param {KeyValueStore} records
 * @returns {Promise<RecentLink[] | undefined>}
 */
async function linksIn(records) {
  return /** @type {RecentLink[] | undefined} */ (await records.get(KEY));
}

/**
 * @template T
 * @param {(records: KeyValueStore) => Promise<T>} work
 * @returns {Promise<T>}
 */
async function withRecords(work) {
  const records = await openKeyValueStore(STORE);
  try {
    return await work(records);
  } finally {
    await records.close();
  }
}

const LANGUAGE_KEY = "audio-language";

/**
 * Remembers the audio language that the user chose, for all content.
 *
 * @param {string} language ISO 639-2
 */
export function rememberLanguage(language) {
  try {
    localStorage.setItem(LANGUAGE_KEY, language);
  } catch {
    // The browser forbids it: the choice holds for this content only.
  }
}

/** Returns the audio language that the user chose last; undefined if there is none. */
export function rememberedLanguage() {
  try {
    return localStorage.getItem(LANGUAGE_KEY) ?? undefined;
  } catch {
    return undefined;
  }
}
