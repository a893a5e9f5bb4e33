/** A tracker's URL longer than this is refused: no server takes more. */
const MAX_URL_LENGTH = 2048;

/** Query members that the announce itself sets. A URL that brings its own could forge an announce (or be aimed at
 * something else than a tracker). */
const OWN_MEMBERS = new Set([
  "info_hash",
  "peer_id",
  "port",
  "uploaded",
  "downloaded",
  "left",
  "event",
  "compact",
  "numwant",
  "trackerid",
]);

/** Whether a text looks like the URL of a tracker that we speak to: http, https, udp, ws or wss, no control characters. */
export function isTrackerUrl(url: string): boolean {
  return url.length <= MAX_URL_LENGTH && /^(https?|udp|wss?):\/\/[^\s/?#@\\]+([/?#]|$)[!-~]*$/i.test(url);
}

/** The scheme of a tracker URL in lower case, without its colon. */
export function trackerScheme(url: string): string {
  return url.slice(0, url.indexOf(":")).toLowerCase();
}

/** What follows the host of a tracker URL: path and query, without the fragment. */
export function trackerPath(url: string): string {
  return /^[a-z]+:\/\/[^/?#]*([^#]*)/i.exec(url)?.[1] ?? "";
}

/** Why an announce must not go to this URL, or undefined where it may. */
export function trackerUrlProblem(url: string): string | undefined {
  if (!isTrackerUrl(url)) return "not the URL of a tracker (http, https, udp, ws or wss)";
  const path = trackerPath(url);
  const query = path.includes("?") ? path.slice(path.indexOf("?") + 1) : "";
  for (const member of query.split("&")) {
    const name = member.split("=", 1)[0]!.toLowerCase();
    if (OWN_MEMBERS.has(name)) return `the URL of the tracker sets ${name} by itself`;
  }
  return undefined;
}
