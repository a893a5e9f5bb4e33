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
/** More than fit a glance are of no use. */
const MAX_LINKS = 8;
/** Longer links are played, and not remembered: all of them together must fit one record. */
const MAX_LINK_CHARACTERS = 6000;

/**
 * The links played last, newest first.
 *
 * @returns {Promise<RecentLink[]>}
 */
export async function recentLinks() {
  return withRecords(async (records) => (await linksIn(records)) ?? []);
}

/**
 * Puts a link first, instead of any other to the same content, and forgets the oldest.
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
      // Another page of this browser may have remembered a link meanwhile.
      if (await records.commit({ check: [[KEY, kept]], set: [[KEY, links]] })) return;
    }
  });
}

/** Forgets them all. */
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
