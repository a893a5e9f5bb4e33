import type { Context, MiddlewareHandler } from "hono";
import { addressBytes, addressScope, canonicalAddress } from "../src/base/address.ts";
import type { RequestOrigin } from "../src/runtime/contract.ts";
import type { RouteEnv } from "./house.ts";

/**
 * Refuses what must not reach any route: a Host that only a rebound name can bring (421), and askers from the
 * Internet (403). Runs before everything else, on every method.
 */
export function gate(allowedHosts: readonly string[]): MiddlewareHandler<RouteEnv> {
  const names = new Set(allowedHosts.map((name) => name.toLowerCase()));
  return async (c, next) => {
    if (!isOwnHost(hostOf(c), names)) {
      const help = "use an IP address, localhost, or a name given with --allowed-hosts";
      return c.text(`this engine does not answer to that name: ${help}\n`, 421);
    }
    if (askerOf(c.env.origin) === "internet") return c.text("access denied\n", 403);
    return next();
  };
}

/**
 * CHOICE(host-names): a web page can only send a Host that its own server's name resolves to, so names that nobody can
 * register on the Internet are safe: localhost, IP addresses, single words (as container networks use) and `.local`,
 * `.internal`, `.home.arpa`. The port does not matter: behind a port mapping we cannot know it.
 */
function isOwnHost(host: string, names: ReadonlySet<string>): boolean {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9_.-]+))(?::\d{1,5})?$/.exec(host);
  if (!match) return false;
  if (match[1] !== undefined) return canonicalAddress(match[1]) !== undefined;
  const name = match[2]!.toLowerCase();
  if (/^[\d.]+$/.test(name)) return canonicalAddress(name) !== undefined;
  if (names.has(name)) return true;
  return /^[a-z_][a-z0-9_-]*(?:\.(?:local|internal|home\.arpa|localhost))?$/.test(name);
}

/** Where a request comes from (interface: Authentication 3). */
export type Asker = "local" | "intranet" | "internet";

/** Judged by the socket's own addresses, never by a header: a header is whatever the sender likes. */
export function askerOf(origin: RequestOrigin): Asker {
  const scope = addressScope(origin.remote.host);
  if (scope === "loopback") return "local";
  if (scope === "private" || scope === "link-local") return "intranet";
  return isSameSubnet(origin.remote.host, origin.local.host) ? "intranet" : "internet";
}

/** Global addresses of one network: the first 64 bits of IPv6, the first 24 of IPv4. */
function isSameSubnet(a: string, b: string): boolean {
  const [left, right] = [addressBytes(a), addressBytes(b)];
  if (!left || !right || left.length !== right.length) return false;
  const prefix = left.length === 4 ? 3 : 8;
  return left.subarray(0, prefix).every((byte, i) => byte === right[i]);
}

/**
 * Whether no page of another site caused a request. Only then may it make the engine fetch from loopback and private
 * addresses, or else every page could look around in the viewer's network.
 */
export function isOwnPage(c: Context<RouteEnv>): boolean {
  const site = c.req.header("sec-fetch-site");
  if (site !== undefined && site !== "same-origin" && site !== "none") return false;
  const page = c.req.header("origin") ?? c.req.header("referer");
  if (page === undefined) return true;
  return URL.canParse(page) && new URL(page).host === new URL(`http://${hostOf(c)}`).host;
}

/**
 * `http://host:port` as the asker addressed us: the start of every URL in an answer. A proxy that adds TLS says so; who
 * says it without one spoils only the answer to itself.
 */
export function baseUrl(c: Context): string {
  const scheme = c.req.header("x-forwarded-proto")?.split(",")[0]?.trim().toLowerCase();
  return `${scheme === "https" ? "https" : "http"}://${hostOf(c)}`;
}

/** The raw Host header; the runtimes disagree about what the request's URL says. */
function hostOf(c: Context): string {
  return c.req.header("host") ?? new URL(c.req.url).host;
}
