import type { Context, MiddlewareHandler } from "hono";
import { isInNetwork } from "../src/base/network.ts";
import type { RequestOrigin } from "../src/runtime/contract.ts";
import { type Asker, isAdmitted, type Page } from "./access-decision.ts";
import { hostChecker, parseHost } from "./access-host.ts";
import { isTrackerPath, policyOf } from "./access-paths.ts";
import { arrivalOf } from "./access-proxy.ts";
import type { House, RouteEnv } from "./house.ts";

const DEFAULT_SWITCHES = { allowsIntranet: true, allowsRemote: false };

/**
 * Refuses what must not reach any route, on every method and path: a Host that is not ours (421), askers that are not let
 * in (403), and pages of other sites where a path is not for them (403).
 */
export function gate({
  access = {},
  allowedHosts = [],
  library,
  tracker,
}: House): MiddlewareHandler<RouteEnv> {
  const isOurHost = hostChecker({ ownNames: access.ownNames ?? [], allowed: allowedHosts });
  return async (c, next) => {
    const { origin } = c.env;
    const arrival = arrivalOf(origin, (name) => c.req.header(name), access.trustedProxies ?? []);
    const proxied = arrival?.forwarded?.host;
    const isMisdirected =
      !isOurHost(rawHost(c), origin.local) || (proxied !== undefined && !isOurHost(proxied, origin.local));
    const isTracker = tracker !== undefined && isTrackerPath(c.req.path);
    if (isMisdirected && !isTracker) return c.text(misdirected(proxied ?? rawHost(c), origin), 421);
    if (arrival === undefined) return c.text("access denied\n", 403);
    const neighbours = access.intranetNetworks ?? [];
    c.env = { ...c.env, origin: { ...arrival.origin, neighbours }, forwarded: arrival.forwarded };
    if (isTracker) {
      c.env = { ...c.env, isForeign: isMisdirected || !isOwnPage(c) };
      return next();
    }
    if (!isAdmitted(askerOf(c.env.origin), library?.access ?? DEFAULT_SWITCHES))
      return c.text("access denied\n", 403);
    if (policyOf(c.req.path) === "own" && !isOwnPage(c)) return c.text("access denied\n", 403);
    return next();
  };
}

/** What to do about it; a host that cannot be read is not repeated. */
function misdirected(host: string, { local }: RequestOrigin): string {
  const name = parseHost(host)?.name;
  const address = local.host.includes(":") ? `[${local.host}]` : local.host;
  const here = `use http://${address}:${local.port}/`;
  const how = name === undefined ? "" : `, or start the engine with --allowed-hosts ${name}`;
  return `this engine does not answer to that address: ${here}${how}\n`;
}

/**
 * Where a request comes from, by addresses compared as numbers.
 *
 * CHOICE(askers): this host is loopback, and every address of this machine itself. The intranet is the subnet of the
 * address that was connected to, link-local addresses, and `intranet-networks`. All else is the Internet, private or not:
 * what lies behind a router, a VPN or a container bridge is not the same subnet.
 */
export function askerOf({ remote, local, networks = [], neighbours = [] }: RequestOrigin): Asker {
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
/** RFC 3927 and RFC 4291 2.5.6: no router passes them on. */
const LINK_LOCAL_4 = { host: "169.254.0.0", bits: 16 };
const LINK_LOCAL_6 = { host: "fe80::", bits: 10 };

/**
 * Whether no page of another site caused a request. Only then may it make the engine fetch from loopback and private
 * addresses, or else every page could look around in the viewer's network.
 */
export function isOwnPage(c: Context<RouteEnv>): boolean {
  const site = c.req.header("sec-fetch-site");
  if (site !== undefined && site !== "same-origin" && site !== "none") return false;
  const origin = c.req.header("origin");
  if (origin !== undefined) return isOwnOrigin(origin, hostOf(c));
  const page = c.req.header("referer");
  if (page === undefined) return true;
  return URL.canParse(page) && isOwnOrigin(new URL(page).origin, hostOf(c));
}

/** Which page caused a request, where pages of the user's own choosing make a difference. */
export function pageOf(c: Context<RouteEnv>, allowedOrigins: readonly string[]): Page {
  if (isOwnPage(c)) return "own";
  return allowedOrigins.includes(c.req.header("origin") ?? "") ? "listed" : "foreign";
}

/** Two Origins in one header, `null` and all that is no plain origin are none of ours. */
function isOwnOrigin(origin: string, host: string): boolean {
  const [, scheme, authority] = /^(https?):\/\/([^/?#@]+)$/.exec(origin) ?? [];
  const [theirs, ours] = [parseHost(authority ?? ""), parseHost(host)];
  if (theirs === undefined || ours === undefined || theirs.name !== ours.name) return false;
  // A proxy that adds TLS is addressed without a port, too.
  const usual = scheme === "https" ? 443 : 80;
  return (theirs.port ?? usual) === (ours.port ?? usual);
}

/** `http://host:port` as the asker addressed us: the start of every URL in an answer. */
export function baseUrl(c: Context<RouteEnv>): string {
  return `${c.env.forwarded?.scheme ?? "http"}://${hostOf(c)}`;
}

/** How the asker addressed us; a trusted proxy may have changed the Host. */
function hostOf(c: Context<RouteEnv>): string {
  return c.env.forwarded?.host ?? rawHost(c);
}

/** The raw Host header; the runtimes disagree about what the request's URL says. */
function rawHost(c: Context<RouteEnv>): string {
  return c.req.header("host") ?? "";
}
