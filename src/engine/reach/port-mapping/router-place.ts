import { addressBytes, addressFromBytes, addressScope, familyOf } from "../../../base/address.ts";
import { isInNetwork } from "../../../base/network.ts";
import type { OwnNetwork, Surroundings } from "../../../runtime/contract.ts";
import { RouterError, type RouterPlace } from "./contract.ts";

/**
 * Where the router is: as the system says, or at the first address of our network, where most are. Rejects with
 * `RouterError` where there is none that could let peers in.
 */
export async function findRouter(
  surroundings: Surroundings,
  mayUse: (network: OwnNetwork) => boolean,
): Promise<RouterPlace> {
  const gateway = await surroundings.gateway();
  const networks = surroundings.networks().filter((network) => familyOf(network.host) === 4);
  if (gateway === "none") throw new RouterError("no router leads to the Internet", "unneeded");
  const ours = gateway === undefined ? networks : networks.filter((network) => isInNetwork(gateway, network));
  if (ours.length === 0) throw new RouterError("no network of ours has a router", "unneeded");
  const [own] = ours.filter((network) => addressScope(network.host) === "private" && mayUse(network));
  if (own === undefined) {
    const isPublic = ours.some(({ host }) => addressScope(host) === "global");
    throw new RouterError(
      isPublic
        ? "this computer has an address of the Internet itself"
        : "the router is in a network that peers are not spoken to in",
      "unneeded",
    );
  }
  return { router: gateway ?? firstAddress(own), isGuessed: gateway === undefined, own };
}

/** The address after that of the network: `.1` of a usual one. */
function firstAddress({ host, bits }: OwnNetwork): string {
  const bytes = addressBytes(host)!;
  for (let bit = bits; bit < 32; bit++) bytes[bit >> 3]! &= ~(0x80 >> (bit & 7));
  bytes[3]! |= 1;
  return addressFromBytes(bytes);
}
