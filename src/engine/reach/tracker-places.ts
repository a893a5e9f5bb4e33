import { addressScope, familyOf, type PeerAddress } from "../../base/address.ts";
import type { OwnNetwork } from "../../runtime/contract.ts";
import { nearnessOf, type TrackerAsker } from "../../swarm/tracker/sight.ts";

/** A machine has an address or two of each IP version; containers' bridges are not worth more. */
const MAX_PLACES = 4;

/** Where this machine can be called. */
export interface OwnPlaces {
  /** Where our peers listen, the wildcard or an address; the port is 0 for as long as nothing does. */
  readonly listening: PeerAddress;
  readonly networks: readonly Pick<OwnNetwork, "host" | "isLoopback">[];
  /** Where the router lets the Internet in to us, if it says so. */
  readonly outside: PeerAddress | undefined;
}

/**
 * Where an asker of our tracker may call us: at our addresses, where we listen at all of them; at loopback for who asks from
 * this machine; at the router for who asks from the Internet, if that one lets in and says what it is called.
 */
export function ownPlaces({ listening, networks, outside }: OwnPlaces, asker: TrackerAsker): PeerAddress[] {
  const { host, port } = listening;
  if (port === 0) return [];
  if (addressScope(host) !== "unspecified") return [{ host, port }];
  if (nearnessOf(asker.host) === "machine")
    return [{ host: familyOf(asker.host) === 6 && host === "::" ? "::1" : "127.0.0.1", port }];
  const isFar = asker.isForeign || nearnessOf(asker.host) === "everywhere";
  const atRouter = isFar && outside ? [outside] : [];
  const here = networks
    .filter((network) => !network.isLoopback && addressScope(network.host) !== "link-local")
    .filter((network) => host === "::" || familyOf(network.host) === 4)
    .map((network) => ({ host: network.host, port }));
  return [...atRouter, ...here].slice(0, MAX_PLACES);
}
