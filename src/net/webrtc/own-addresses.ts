import { addressScope, addressText, familyOf, type PeerAddress } from "../../base/address.ts";
import type { OwnNetwork } from "../../runtime/contract.ts";

export interface WebRtcAddressInputs {
  /** The address (or wildcard) of the UDP port. */
  readonly p2pHost: string;
  readonly port: number;
  /** The networks that peer traffic may use. */
  readonly networks: readonly Pick<OwnNetwork, "host" | "isLoopback">[];
  /** The external address and port that the router forwards, if known. */
  readonly external: PeerAddress | undefined;
  /** True if the tracker has an address in a local network. */
  readonly isLocal: boolean;
}

/** A machine has one or two addresses of each IP version; more are bridges of containers. */
const MAX_ADDRESSES = 6;

/**
 * Returns the addresses for an offer or answer, the best first. Strangers on the Internet do not receive addresses of local networks;
 * a browser in the same network reaches them only through a tracker of that network.
 */
export function webRtcAddresses(inputs: WebRtcAddressInputs): readonly PeerAddress[] {
  const { p2pHost, port, networks, external, isLocal } = inputs;
  const isWildcard = addressScope(p2pHost) === "unspecified";
  const hosts = isWildcard
    ? networks
        .filter(({ host, isLoopback }) => !isLoopback && addressScope(host) !== "link-local")
        .filter(({ host }) => p2pHost !== "0.0.0.0" || familyOf(host) === 4)
        .map(({ host }) => host)
    : [p2pHost];
  const own = hosts
    .filter((host) => isLocal || addressScope(host) === "global")
    .map((host) => ({ host, port }));
  const all = [...own, ...(external ? [external] : [])];
  const distinct = new Map(all.map((address) => [addressText(address), address]));
  return [...distinct.values()].slice(0, MAX_ADDRESSES);
}
