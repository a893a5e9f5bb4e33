// @ts-check
/**
 * The places of the app: what the shell and the places share.
 *
 * A route is the part of the URL after `#/`: its first part is the place, `path` are the others. `link` is content that
 * another page linked to (`/#magnet:…`).
 *
 * @typedef {{ path: readonly string[], link?: string | undefined }} Route
 * @typedef {{ show: (route: Route) => void, hide: () => void }} Place
 *
 * A view is one page of a place. `show` runs at each visit and may throw; `hide` ends what it started.
 *
 * @typedef {{ element: HTMLElement, show: (path: readonly string[]) => unknown, hide?: () => void }} View
 */

/**
 * Returns the absolute URL of a path of the engine, for other programs. The engine can be below a path of a reverse proxy, so
 * no path of the page begins with a slash.
 *
 * @param {string} path without a slash at the start
 */
export function appUrl(path) {
  return new URL(path, location.href.replace(/[?#].*$/, "")).href;
}

/**
 * Returns path and query of an absolute URL of the engine, relative to the page, so that the request stays on the page's own
 * origin and below the path prefix of a reverse proxy.
 *
 * @param {string} url
 */
export function ownPath(url) {
  const { pathname, search } = new URL(url, location.href);
  const prefix = new URL(appUrl("")).pathname;
  return pathname.slice(pathname.startsWith(prefix) ? prefix.length : 1) + search;
}
