/** Longer URLs are refused; servers do not accept them. */
const MAX_URL_LENGTH = 2048;

/** Query parameters that the announce sets. A tracker URL that contains one could forge an announce or attack another service. */
const ANNOUNCE_PARAMETERS = new Set([
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

/** Returns true if a text is a URL of a supported tracker: http, https, udp, ws or wss, without control characters. */
export function isTrackerUrl(url: string): boolean {
  return url.length <= MAX_URL_LENGTH && /^(https?|udp|wss?):\/\/[^\s/?#@\\]+([/?#]|$)[!-~]*$/i.test(url);
}

/** Returns the scheme of a tracker URL in lower case, without colon. */
export function trackerScheme(url: string): string {
  return url.slice(0, url.indexOf(":")).toLowerCase();
}

/** Returns path and query of a tracker URL, without fragment. */
export function trackerPath(url: string): string {
  return /^[a-z]+:\/\/[^/?#]*([^#]*)/i.exec(url)?.[1] ?? "";
}

/** Returns why an announce must not be sent to this URL, or undefined if it may. */
export function trackerUrlProblem(url: string): string | undefined {
  if (!isTrackerUrl(url)) return "not a tracker URL (http, https, udp, ws or wss)";
  const path = trackerPath(url);
  const query = path.includes("?") ? path.slice(path.indexOf("?") + 1) : "";
  for (const parameter of query.split("&")) {
    const name = parameter.split("=", 1)[0]!.toLowerCase();
    if (ANNOUNCE_PARAMETERS.has(name)) return `the tracker URL contains ${name}, which the announce sets`;
  }
  return undefined;
}
