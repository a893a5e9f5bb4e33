// @ts-check
/**
 * Content as a parameter of the playback endpoints, or a playlist item by its id.
 *
 * @typedef {{ parameter: "magnet" | "infohash" | "content_id" | "url" | "item", value: string }} Link
 */

/** The Base32 form of an infohash has 32 characters, the hexadecimal one 40. */
const HASH = /^(?:[0-9a-f]{40}|[a-z2-7]{32})$/i;

const WEB_URL = /^https?:\/\/\S+$/i;

/**
 * The parameters of a `sluice:?…` link, in order of preference.
 *
 * @type {readonly [Link["parameter"], RegExp][]}
 */
const LINK_PARAMETERS = [
  ["magnet", /^magnet:\?\S+$/i],
  ["infohash", HASH],
  ["content_id", /^[0-9a-f]{40}$/i],
  ["url", WEB_URL],
];

/**
 * Parses a magnet link, an infohash, `sluice:?…`, `acestream://…` or a web URL. Returns undefined for anything else.
 *
 * @param {string} text
 * @returns {Link | undefined}
 */
export function readLink(text) {
  const value = text.trim();
  if (/^magnet:\?/i.test(value)) return { parameter: "magnet", value };
  const named = /^(?:sluice|acestream):\?(.+)$/is.exec(value);
  if (named) return namedLink(new URLSearchParams(named[1]));
  const scheme = /^(?:sluice|acestream):\/\/([0-9a-f]{40})$/i.exec(value);
  if (scheme) return { parameter: "content_id", value: String(scheme[1]).toLowerCase() };
  if (HASH.test(value)) return { parameter: "infohash", value: value.toLowerCase() };
  if (WEB_URL.test(value)) return { parameter: "url", value };
  return undefined;
}

/**
 * @param {URLSearchParams} query
 * @returns {Link | undefined}
 */
function namedLink(query) {
  for (const [parameter, form] of LINK_PARAMETERS) {
    const value = query.get(parameter)?.trim() ?? "";
    if (!form.test(value)) continue;
    const isHash = parameter === "infohash" || parameter === "content_id";
    return { parameter, value: isHash ? value.toLowerCase() : value };
  }
  return undefined;
}

/**
 * Returns a title for a link: the name in a magnet link, the last part of a URL, or the start of a hash.
 *
 * @param {Link} link
 */
export function linkTitle(link) {
  if (link.parameter === "magnet") {
    const query = new URLSearchParams(link.value.slice(link.value.indexOf("?") + 1));
    const name = query.get("dn");
    if (name) return name;
    return /btih:(\w{8})/i.exec(link.value)?.[1]?.concat("…") ?? "magnet";
  }
  if (link.parameter === "url") {
    const last =
      link.value
        .replace(/[?#].*$/, "")
        .split("/")
        .pop() ?? "";
    return decoded(last) || link.value;
  }
  return `${link.value.slice(0, 8)}…`;
}

/**
 * Returns the link of an infohash.
 *
 * @param {string} infohash
 * @returns {Link}
 */
export function hashLink(infohash) {
  return { parameter: "infohash", value: infohash };
}

/**
 * What one device sends to another: the content, the file and the position.
 *
 * @typedef {{ link: Link, fileIndex: number | undefined, atSeconds: number }} Handover
 */

/**
 * Validates a handover from another page. Returns undefined if it is invalid.
 *
 * @param {any} data
 * @returns {Handover | undefined}
 */
export function readHandover(data) {
  const { link, fileIndex, atSeconds } = data ?? {};
  const isIndex = fileIndex === undefined || (Number.isInteger(fileIndex) && fileIndex >= 0);
  if (typeof link?.value !== "string" || !isIndex || !Number.isFinite(atSeconds)) return undefined;
  const known = readLink(link.value);
  if (known === undefined) return undefined;
  // The same digits can be an infohash or a content id.
  const isContentId = known.parameter === "infohash" && link.parameter === "content_id";
  return {
    link: isContentId ? { ...known, parameter: "content_id" } : known,
    fileIndex,
    atSeconds: Math.max(0, atSeconds),
  };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // A stray percent sign is shown as it is.
  }
}
