import { canonicalAddress } from "../../src/base/address.ts";
import { isInNetwork, type Network } from "../../src/base/network.ts";
import type { RequestOrigin } from "../../src/runtime/contract.ts";

/** No real chain of proxies is longer; a longer list is an attack on the engine's CPU time. */
const MAX_HOPS = 20;

/** Longer than the paths that proxies assign. */
const MAX_PREFIX = 200;

/** The scheme, host and path prefix of the client's request, as a trusted proxy reports them. */
export interface Forwarded {
  readonly scheme: "http" | "https" | undefined;
  readonly host: string | undefined;
  /** Such as `/sluice`; empty at the root. */
  readonly prefix: string;
}

/** The origin of a request: the client behind a trusted proxy, else the other end of the connection. */
interface Arrival {
  readonly origin: RequestOrigin;
  readonly forwarded: Forwarded | undefined;
}

/**
 * Finds the client behind trusted proxies: the last address of X-Forwarded-For that is not a trusted proxy, because that
 * client may have forged all addresses before it. Unless the connection comes from a trusted proxy, no header is read.
 * Returns undefined if a trusted proxy sent a header that cannot be parsed, so that the client is unknown.
 *
 * CHOICE(trusted-proxies): a trusted proxy that names no client is itself the client, such as for a health check.
 */
export function arrivalOf(
  origin: RequestOrigin,
  header: (name: string) => string | undefined,
  trusted: readonly Network[],
): Arrival | undefined {
  const isTrusted = (host: string) => trusted.some((network) => isInNetwork(host, network));
  if (!isTrusted(origin.remote.host)) return { origin, forwarded: undefined };
  const scheme = firstOf(header("x-forwarded-proto"))?.toLowerCase();
  const forwarded: Forwarded = {
    scheme: scheme === "http" || scheme === "https" ? scheme : undefined,
    host: firstOf(header("x-forwarded-host")),
    prefix: prefixOf(header("x-forwarded-prefix") ?? header("x-ingress-path")),
  };
  const hops = header("x-forwarded-for")?.split(",") ?? [];
  if (hops.length > MAX_HOPS) return undefined;
  let remote = origin.remote.host;
  for (const hop of hops.reverse()) {
    if (!isTrusted(remote)) break;
    const address = hopAddress(hop.trim());
    if (address === undefined) return undefined;
    remote = address;
  }
  return { origin: originFrom(origin, remote), forwarded };
}

/** Returns the first value of a list header. A client that forges it only breaks the URLs in its own response. */
function firstOf(text: string | undefined): string | undefined {
  return text === undefined ? undefined : text.split(",")[0]!.trim();
}

/**
 * CHOICE(path-prefix): a proxy that serves the engine below a path names it with `X-Forwarded-Prefix` (Traefik, Spring) or
 * `X-Ingress-Path` (Home Assistant). An invalid one is ignored.
 */
function prefixOf(text: string | undefined): string {
  const prefix = firstOf(text)?.replace(/\/+$/, "") ?? "";
  return /^(?:\/[\w.~-]+)+$/.test(prefix) && prefix.length <= MAX_PREFIX ? prefix : "";
}

/** Parses an address with an optional port, which some proxies append: `1.2.3.4:5`, `[::1]:5`. */
function hopAddress(text: string): string | undefined {
  const [, six, four] = /^(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)$/.exec(text) ?? [];
  return canonicalAddress(six ?? four ?? text);
}

/**
 * Builds the origin of a client behind a proxy. The proxy's connection does not show which network the client is on, so a
 * client on any network of this machine counts as a neighbour.
 */
function originFrom(origin: RequestOrigin, remote: string): RequestOrigin {
  if (remote === origin.remote.host) return origin;
  const own = (origin.networks ?? []).filter(({ host }) => !host.startsWith("127.") && host !== "::1");
  const distant = remote.includes(":") ? "0.0.0.0" : "::";
  return {
    ...origin,
    remote: { host: remote, port: 0 },
    // A client on none of them gets an address of the other IP version, whose subnet contains no such client.
    local: { ...origin.local, host: own.find((network) => isInNetwork(remote, network))?.host ?? distant },
  };
}
