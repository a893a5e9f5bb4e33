// @ts-check
/**
 * What a pasted text names, as the parameter of the playback endpoints; or an item of the playlist, by its number.
 *
 * @typedef {{ parameter: "magnet" | "infohash" | "content_id" | "url" | "item", value: string }} Link
 */

/** The Base32 form of an infohash has 32 characters, the hexadecimal one 40. */
const HASH = /^(?:[0-9a-f]{40}|[a-z2-7]{32})$/i;

const URL_OF_SOMETHING = /^https?:\/\/\S+$/i;

/**
 * What a `sluice:?…` link may name, the most telling first.
 *
 * @type {readonly [Link["parameter"], RegExp][]}
 */
const NAMED = [
  ["magnet", /^magnet:\?\S+$/i],
  ["infohash", HASH],
  ["content_id", /^[0-9a-f]{40}$/i],
  ["url", URL_OF_SOMETHING],
];

/**
 * Reads a magnet, an infohash, `sluice:?…`, `acestream://…` or the URL of a transport file; undefined where it is none of them.
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
  if (URL_OF_SOMETHING.test(value)) return { parameter: "url", value };
  return undefined;
}

/**
 * @param {URLSearchParams} query
 * @returns {Link | undefined}
 */
function namedLink(query) {
  for (const [parameter, form] of NAMED) {
    const value = query.get(parameter)?.trim() ?? "";
    if (!form.test(value)) continue;
    const isHash = parameter === "infohash" || parameter === "content_id";
    return { parameter, value: isHash ? value.toLowerCase() : value };
  }
  return undefined;
}

/**
 * A name for a link, for the list of recent ones: a magnet's own name, the last part of a URL, the start of a hash.
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

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // A stray percent sign: show it as it is.
  }
}
