import { addressScope, canonicalAddress, familyOf } from "../base/address.ts";
import type { Deadline } from "../outbound/deadline.ts";
import type { Runtime } from "../runtime/contract.ts";
import { trackerScheme } from "../wire/tracker-url.ts";

/** Where a tracker is: its name, its port (0 where the URL has none), and an address of each IP version it has. */
export interface TrackerPlace {
  readonly name: string;
  readonly port: number;
  /** IPv4 first: most swarms are there. */
  readonly addresses: readonly string[];
}

/** Looks up a tracker; rejects where its URL names no place, its name no address that can be asked, or one that may not be
 * asked: a loopback, private or link-local one unless `allowPrivate`. */
export async function findTracker(
  runtime: Pick<Runtime, "lookup">,
  url: string,
  deadline: Deadline,
  allowPrivate: boolean,
): Promise<TrackerPlace> {
  const { name, port } = hostAndPort(url);
  const literal = canonicalAddress(name);
  const found = literal === undefined ? await deadline.race(runtime.lookup(name)) : [literal];
  const usable = found.filter(isUsable);
  const atHome = usable.find((address) => addressScope(address) !== "global");
  if (atHome !== undefined && !allowPrivate)
    throw new Error(`${name} may not be asked: ${atHome} is a ${addressScope(atHome)} address`);
  if (usable.length === 0) throw new Error(`${name} has no address that can be asked`);
  const first = (family: 4 | 6) => usable.filter((host) => familyOf(host) === family).slice(0, 1);
  return { name, port, addresses: [...first(4), ...first(6)] };
}

/** Only UDP has no port of its own. */
function hostAndPort(url: string): { name: string; port: number } {
  const pattern = /^[a-z]+:\/\/(?:[^/?#@]*@)?(?:\[([0-9a-f:.%]+)\]|([^/?#:[\]]+))(?::(\d{1,5}))?(?:[/?#]|$)/i;
  const match = pattern.exec(url);
  const port = Number(match?.[3] ?? 0);
  const isUdp = trackerScheme(url) === "udp";
  if (!match || port > 65535 || (isUdp && port === 0))
    throw new Error(isUdp ? "expected udp://host:port" : "expected the URL of a web server");
  return { name: match[1] ?? match[2]!, port };
}

function isUsable(address: string): boolean {
  const scope = addressScope(address);
  return scope !== "multicast" && scope !== "unspecified";
}
