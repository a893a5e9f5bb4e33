import { canonicalAddress } from "../src/base/address.ts";
import { isInNetwork, type Network } from "../src/base/network.ts";
import type { RequestOrigin } from "../src/runtime/contract.ts";

/** More hops than anybody has; a longer list is made to keep us busy. */
const MAX_HOPS = 20;

/** What a trusted proxy tells of the request that it got. */
export interface Forwarded {
  readonly scheme: "http" | "https" | undefined;
  readonly host: string | undefined;
}

/** A request as it came to the first of us: the proxy's own connection where no trusted proxy brought it. */
export interface Arrival {
  readonly origin: RequestOrigin;
  readonly forwarded: Forwarded | undefined;
}

/**
 * Who asks, where a proxy of ours stands between: the last address of X-Forwarded-For that is no trusted proxy, for all
 * before it may be forged by that one. Without a trusted proxy no header is looked at. Undefined where a trusted proxy
 * says something that cannot be read: then nobody knows who asks.
 *
 * CHOICE(trusted-proxies): a trusted proxy that names nobody asks for itself, such as for a health check.
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
  return { origin: asked(origin, remote), forwarded };
}

/** What the proxy that the asker spoke to has said. Who made it up before that spoils the URLs in an answer to itself. */
function firstOf(text: string | undefined): string | undefined {
  return text === undefined ? undefined : text.split(",")[0]!.trim();
}

/** An address, with or without a port as some proxies write it: `1.2.3.4:5`, `[::1]:5`. */
function hopAddress(text: string): string | undefined {
  const [, six, four] = /^(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)$/.exec(text) ?? [];
  return canonicalAddress(six ?? four ?? text);
}

/**
 * The proxy's connection tells nothing of the asker's network: neighbours are then those on any network of this machine.
 */
function asked(origin: RequestOrigin, remote: string): RequestOrigin {
  if (remote === origin.remote.host) return origin;
  const own = (origin.networks ?? []).filter(({ host }) => !host.startsWith("127.") && host !== "::1");
  const apart = remote.includes(":") ? "0.0.0.0" : "::";
  return {
    ...origin,
    remote: { host: remote, port: 0 },
    // Where it is on none of them: an address of the other IP version, which is near nobody.
    local: { ...origin.local, host: own.find((network) => isInNetwork(remote, network))?.host ?? apart },
  };
}
