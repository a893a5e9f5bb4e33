/**
 * What pages of other sites may do with an address: reach and read it (`open`), reach it while its methods decide by
 * themselves (`methods`), lead to it, for it is the same for everybody and tells nothing (`static`), or nothing (`own`).
 */
export type PathPolicy = "open" | "methods" | "static" | "own";

/**
 * CHOICE(cors): media, redirects and the sessions of players are open to web players elsewhere; whatever is not named here
 * is for players and our own pages alone, so that an address that is added later is shut until somebody opens it.
 */
const POLICIES: readonly (readonly [path: RegExp, policy: PathPolicy])[] = [
  [/^\/(?:ace|hls|content|files|play\/infohash)\//, "open"],
  [/^\/(?:server|service)\/api\/?$/, "methods"],
  [/^\/webui\/api\/service\/?$/, "methods"],
  [/^\/(?:docs\/?)?$/, "static"],
];

/**
 * CHOICE(tracker-access): the two paths of our own tracker, where it is on, are open to whoever can reach the port, under any
 * name. Whom a page of another site may have sent is told of nobody in a home network.
 */
export function isTrackerPath(path: string): boolean {
  return path === "/announce" || path === "/scrape";
}

/** The policy of a path as the router sees it. */
export function policyOf(path: string): PathPolicy {
  return POLICIES.find(([pattern]) => pattern.test(path))?.[1] ?? "own";
}
