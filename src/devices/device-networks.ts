import { addressScope, familyOf } from "../base/address.ts";
import { isContainerBridge, isInNetwork } from "../base/network.ts";
import type { OwnNetwork } from "../runtime/contract.ts";

/** Interfaces of containers, virtual machines and VPNs: devices are not there, and their other users must not be searched. */
const VIRTUAL =
  /^(?:veth|vmnet|vboxnet|vEthernet|flannel|cali|wg|tun|tap|tailscale|zt|utun|ppp|nordlynx|proton|mullvad)/;
/** More networks than a home has; each one costs a socket during a search. */
const MAX_NETWORKS = 8;

/**
 * Returns the networks that devices are searched in and that the DLNA server serves: IPv4 networks with private or link-local addresses.
 * `interfaces` names interfaces or own addresses, separated by commas; empty means every network except loopback, containers, virtual
 * machines and VPNs.
 */
export function deviceNetworks(networks: readonly OwnNetwork[], interfaces: string): OwnNetwork[] {
  const chosen = interfaces.split(",").map((name) => name.trim());
  const isAutomatic = interfaces.trim() === "";
  return networks
    .filter((network) => {
      const { host, bits, isLoopback, interfaceName } = network;
      if (familyOf(host) !== 4 || bits === 32 || !isLocalScope(host)) return false;
      if (isAutomatic)
        return !isLoopback && !isContainerBridge(interfaceName) && !VIRTUAL.test(interfaceName);
      return chosen.includes(interfaceName) || chosen.includes(host);
    })
    .slice(0, MAX_NETWORKS);
}

/**
 * Parses a URL that a device at `host` announced, relative to `base`. Undefined unless it is an http URL at that same address, which must
 * be in the network: an announcement must not direct this engine to other machines.
 */
export function deviceUrl(text: string, host: string, network: OwnNetwork, base?: URL): URL | undefined {
  if (!URL.canParse(text, base)) return undefined;
  const url = new URL(text, base);
  const isOwn = url.protocol === "http:" && url.hostname === host && url.username + url.password === "";
  return isOwn && isInNetwork(host, network) && isLocalScope(host) ? url : undefined;
}

/** Loopback is only reached if the user names its interface. */
function isLocalScope(host: string): boolean {
  return ["private", "link-local", "loopback"].includes(addressScope(host));
}
