import { addressScope, familyOf, type PeerAddress } from "../../base/address.ts";
import type { OwnNetwork } from "../../runtime/contract.ts";
import { nearnessOf, type TrackerAsker } from "../../swarm/tracker/sight.ts";

/** A machine has an address or two of each IP version; containers' bridges are not worth more. */
const MAX_PLACES = 4;

/**
 * Where an asker of our tracker may call us: at our addresses, where we listen at all of them; at loopback for who asks from
 * this machine. Who asks from the Internet is told none of home: there the swarm tells of us as of anybody.
 */
export function ownPlaces(
  { host, port }: PeerAddress,
  networks: readonly Pick<OwnNetwork, "host" | "isLoopback">[],
  asker: TrackerAsker,
): PeerAddress[] {
  if (port === 0) return [];
  if (addressScope(host) !== "unspecified") return [{ host, port }];
  if (nearnessOf(asker.host) === "machine")
    return [{ host: familyOf(asker.host) === 6 && host === "::" ? "::1" : "127.0.0.1", port }];
  return networks
    .filter((network) => !network.isLoopback && addressScope(network.host) !== "link-local")
    .filter((network) => host === "::" || familyOf(network.host) === 4)
    .map((network) => ({ host: network.host, port }))
    .slice(0, MAX_PLACES);
}
