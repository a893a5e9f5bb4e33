import {
  addressBytes,
  addressFromBytes,
  addressScope,
  familyOf,
  type PeerAddress,
} from "../../base/address.ts";
import { messageOf } from "../../base/errors.ts";
import { isInNetwork } from "../../base/network.ts";
import type { Net, OwnNetwork, Surroundings, UdpSocket } from "../../runtime/contract.ts";
import { RouterError, type RouterLocation } from "./contract.ts";

/**
 * Finds the router: the gateway that the system reports, or the first address of our network, the usual one. Rejects with
 * `RouterError` if no router can map ports.
 */
export async function findRouter(
  surroundings: Surroundings,
  mayUse: (network: OwnNetwork) => boolean,
): Promise<RouterLocation> {
  const gateway = await surroundings.gateway();
  const networks = surroundings.networks().filter((network) => familyOf(network.host) === 4);
  if (gateway === "none") throw new RouterError("no router leads to the Internet", "unneeded");
  const candidates =
    gateway === undefined ? networks : networks.filter((network) => isInNetwork(gateway, network));
  if (candidates.length === 0) throw new RouterError("no local network has a router", "unneeded");
  const [own] = candidates.filter((network) => addressScope(network.host) === "private" && mayUse(network));
  if (own === undefined) {
    const isPublic = candidates.some(({ host }) => addressScope(host) === "global");
    throw new RouterError(
      isPublic
        ? "this machine has a public address"
        : "the settings exclude the network of the router from peer traffic",
      "unneeded",
    );
  }
  return { router: gateway ?? firstAddress(own), isGuessed: gateway === undefined, own };
}

/** Returns the first host address of a network, typically `.1`. */
function firstAddress({ host, bits }: OwnNetwork): string {
  const bytes = addressBytes(host)!;
  for (let bit = bits; bit < 32; bit++) bytes[bit >> 3]! &= ~(0x80 >> (bit & 7));
  bytes[3]! |= 1;
  return addressFromBytes(bytes);
}

/** Binds a UDP socket at our address in the router's network. Rejects with `RouterError`: the address may be gone. */
export async function bindLocal(
  net: Pick<Net, "bindUdp">,
  host: string,
  received: (bytes: Uint8Array, from: PeerAddress) => void,
): Promise<UdpSocket> {
  try {
    return await net.bindUdp({ host, port: 0 }, received);
  } catch (thrown) {
    throw new RouterError(messageOf(thrown));
  }
}
