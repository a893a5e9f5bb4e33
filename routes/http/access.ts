import type { Context, MiddlewareHandler } from "hono";
import { isInNetwork } from "../../src/base/network.ts";
import type { RequestOrigin } from "../../src/runtime/contract.ts";
import { hostChecker, parseHost } from "./access-host.ts";
import { arrivalOf } from "./access-proxy.ts";
import { type ClientNetwork, isAdmitted, type PageOrigin } from "./access-rules.ts";
import type { RouteDependencies, RouteEnv } from "./dependencies.ts";

const DEFAULT_SWITCHES = { allowsIntranet: true, allowsRemote: false };

/**
 * What pages of other sites may do with a path: request and read it (`open`), request it and leave the decision to each
 * control method (`methods`), link to it because it is the same for all users and holds no data (`static`), or nothing
 * (`same-origin`).
 */
type PathPolicy = "open" | "methods" | "static" | "same-origin";

/**
 * CHOICE(cors): media, redirects and player sessions are open to web players of other sites. All other paths are for
 * players and the engine's own pages, so a path that is added later stays closed until it is listed here.
 */
const POLICIES: readonly (readonly [path: RegExp, policy: PathPolicy])[] = [
  [/^\/(?:ace|hls|content|files|vod|signed|subtitles|play\/infohash)\//, "open"],
  // The same paths on another engine; a pattern of its own keeps the control interface out.
  [/^\/engine\/[\w-]+\/(?:ace|hls|content|files|subtitles)\//, "open"],
  // `/live/<user>/<password>/…` is for television apps: pages of other sites must not try passwords.
  [/^\/live\/[0-9a-f]{40}\/[^/]*$/i, "open"],
  // Pages for viewers on other sites (`sluice viewer-page`) get the same media from the swarm, and verify them.
  [/^\/swarm\/[0-9a-f]{40}(?:\/(?:settings|pieces\/(?:recent|\d+)|peerjs(?:\/(?:id|peers))?))?$/i, "open"],
  [/^\/(?:server\/api(?:\/\w*)?|service\/api\/?)$/, "methods"],
  [/^\/webui\/api\/service\/?$/, "methods"],
  [/^\/(?:docs\/?)?$/, "static"],
  [/^\/webui\/player\//, "static"],
  [/^\/watch\/[0-9a-f]{40}$/i, "static"],
];

/** Returns the cross-origin policy of a path as the router sees it. */
export function policyOf(path: string): PathPolicy {
  return POLICIES.find(([pattern]) => pattern.test(path))?.[1] ?? "same-origin";
}

/**
 * CHOICE(tracker-access): the two paths of the engine's own tracker are open to every client that can reach the port,
 * under any host name. A request that a page of another site may have caused gets no addresses of the local network.
 */
function isTrackerPath(path: string): boolean {
  return path === "/announce" || path === "/scrape";
}

/**
 * Creates the middleware that refuses requests before any route, on every method and path: an unknown Host (421), clients
 * of a network that is not admitted (403), and pages of other sites on paths that are closed to them (403).
 */
export function accessMiddleware({
  access = {},
  allowedHosts = [],
  library,
  tracker,
}: RouteDependencies): MiddlewareHandler<RouteEnv> {
  const isOwnHost = hostChecker({ ownNames: access.ownNames ?? [], allowed: allowedHosts });
  return async (c, next) => {
    const { origin } = c.env;
    const arrival = arrivalOf(origin, (name) => c.req.header(name), access.trustedProxies ?? []);
    const proxied = arrival?.forwarded?.host;
    const isMisdirected =
      !isOwnHost(rawHost(c), origin.local) || (proxied !== undefined && !isOwnHost(proxied, origin.local));
    const isTracker = tracker !== undefined && isTrackerPath(c.req.path);
    if (isMisdirected && !isTracker) return c.text(misdirectedText(proxied ?? rawHost(c), origin), 421);
    if (arrival === undefined) return refusal(c);
    const neighbours = access.intranetNetworks ?? [];
    c.env = { ...c.env, origin: { ...arrival.origin, neighbours }, forwarded: arrival.forwarded };
    if (isTracker) {
      c.env = { ...c.env, isForeign: isMisdirected || !isSameOrigin(c) };
      return next();
    }
    if (!isAdmitted(clientNetworkOf(c.env.origin), library?.access ?? DEFAULT_SWITCHES)) return refusal(c);
    if (policyOf(c.req.path) === "same-origin" && !isSameOrigin(c)) return refusal(c);
    return next();
  };
}

function refusal(c: Context<RouteEnv>): Response {
  setRefusalHeaders(c);
  return c.text("access denied\n", 403);
}

/**
 * Lets a page of another site read that its request was refused. Without this header the browser reports only a network
 * error, as if the engine were not running.
 */
export function setRefusalHeaders(c: Context<RouteEnv>): void {
  // A refused preflight has no readers: the browser sends no request after it.
  if (c.req.method === "OPTIONS" || c.req.header("origin") === undefined || isSameOrigin(c)) return;
  c.header("access-control-allow-origin", "*");
}

/** Builds the error text for a request with an unknown Host. It repeats the host only if it is well-formed. */
function misdirectedText(host: string, { local }: RequestOrigin): string {
  const name = parseHost(host)?.name;
  const address = local.host.includes(":") ? `[${local.host}]` : local.host;
  const advice = `use http://${address}:${local.port}/`;
  const option = name === undefined ? "" : `, or start the engine with --allowed-hosts ${name}`;
  return `this engine does not answer to that address: ${advice}${option}\n`;
}

/**
 * Classifies the client of a request, comparing addresses as numbers.
 *
 * CHOICE(client-networks): `local` is loopback and every address of this machine. `intranet` is the subnet of the address that the
 * client connected to, link-local addresses, and `intranet-networks`. Everything else is `internet`, including private
 * addresses: a network behind a router, a VPN or a container bridge is not the same subnet.
 */
export function clientNetworkOf({
  remote,
  local,
  networks = [],
  neighbours = [],
}: RequestOrigin): ClientNetwork {
  const { host } = remote;
  if (host === "::1" || isInNetwork(host, LOOPBACK_4)) return "local";
  if (host === local.host || networks.some((own) => own.host === host)) return "local";
  const bits = networks
    .filter((own) => own.host === local.host)
    .map((own) => own.bits)
    .sort((a, b) => a - b)[0];
  const subnet = { host: local.host, bits: bits ?? (local.host.includes(":") ? 64 : 24) };
  const near = [LINK_LOCAL_4, LINK_LOCAL_6, subnet, ...neighbours];
  return near.some((network) => isInNetwork(host, network)) ? "intranet" : "internet";
}

const LOOPBACK_4 = { host: "127.0.0.0", bits: 8 };
/** RFC 3927 and RFC 4291 2.5.6: routers do not forward these. */
const LINK_LOCAL_4 = { host: "169.254.0.0", bits: 16 };
const LINK_LOCAL_6 = { host: "fe80::", bits: 10 };

/** Returns whether no page of another site caused the request: players and the engine's own pages send such requests. */
export function isSameOrigin(c: Context<RouteEnv>): boolean {
  const site = c.req.header("sec-fetch-site");
  if (site !== undefined && site !== "same-origin" && site !== "none") return false;
  const origin = c.req.header("origin");
  if (origin !== undefined) return isOwnOrigin(origin, hostOf(c));
  const page = c.req.header("referer");
  if (page === undefined) return true;
  return URL.canParse(page) && isOwnOrigin(new URL(page).origin, hostOf(c));
}

/** Classifies the page that caused a request; `allowedOrigins` comes from the setting `allowed-origins`. */
export function pageOriginOf(c: Context<RouteEnv>, allowedOrigins: readonly string[]): PageOrigin {
  if (isSameOrigin(c)) return "same-origin";
  return allowedOrigins.includes(c.req.header("origin") ?? "") ? "allowed" : "foreign";
}

/** Returns whether a page of another site, not listed in `allowed-origins`, caused the request. */
export function isForeignPage(c: Context<RouteEnv>, { access }: Pick<RouteDependencies, "access">): boolean {
  return pageOriginOf(c, access?.allowedOrigins ?? []) === "foreign";
}

/**
 * Returns whether this request may make the engine fetch from loopback and private addresses. Clients of this host may;
 * with `private-urls=intranet` clients of its subnet may, too. A page of another site never may, or else it could
 * scan the user's network.
 */
export function allowsPrivateUrls(
  c: Context<RouteEnv>,
  { privateUrls }: Pick<RouteDependencies, "privateUrls">,
): boolean {
  if (!isSameOrigin(c)) return false;
  const network = clientNetworkOf(c.env.origin);
  return network === "local" || (network === "intranet" && privateUrls === "intranet");
}

/** Returns false for `null`, for two origins in one header, and for everything else that is not a plain origin. */
function isOwnOrigin(origin: string, host: string): boolean {
  const [, scheme, authority] = /^(https?):\/\/([^/?#@]+)$/.exec(origin) ?? [];
  const [theirs, ours] = [parseHost(authority ?? ""), parseHost(host)];
  if (theirs === undefined || ours === undefined || theirs.name !== ours.name) return false;
  // A client that reaches the engine through a TLS proxy sends no port in Host either.
  const defaultPort = scheme === "https" ? 443 : 80;
  return (theirs.port ?? defaultPort) === (ours.port ?? defaultPort);
}

/** Returns `http://host:port` as the client addressed the engine, with the path prefix of a proxy: the start of every URL in a response. */
export function baseUrl(c: Context<RouteEnv>): string {
  return `${c.env.forwarded?.scheme ?? "http"}://${hostOf(c)}${pathPrefix(c)}`;
}

/** Returns the path below which a proxy serves the engine, such as `/sluice`; empty without one. */
export function pathPrefix(c: Context<RouteEnv>): string {
  return c.env.forwarded?.prefix ?? "";
}

/** Returns the host that the client addressed; a trusted proxy may have changed the Host header. */
function hostOf(c: Context<RouteEnv>): string {
  return c.env.forwarded?.host ?? rawHost(c);
}

/** Returns the Host header, not the host of the request's URL, on which the runtimes disagree. */
function rawHost(c: Context<RouteEnv>): string {
  return c.req.header("host") ?? "";
}
