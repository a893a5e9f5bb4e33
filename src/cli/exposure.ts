import { existsSync } from "node:fs";
import { addressScope, familyOf, type PeerAddress } from "../base/address.ts";
import { isContainerBridge } from "../base/network.ts";
import type { OwnNetwork } from "../runtime/contract.ts";

/** Returns whether this process runs in a container of Docker or Podman. */
export function isInContainer(): boolean {
  return existsSync("/.dockerenv") || existsSync("/run/.containerenv");
}

/**
 * CHOICE(listen-address): the engine listens on all networks by default, as the interface requires.
 *
 * Returns a warning for each network of this machine whose devices count as the local subnet of an interface at `http`, although
 * they may not belong to the user: public networks, container bridges, and the network of a container (`isContained`).
 */
export function exposureWarnings(
  http: PeerAddress,
  networks: readonly OwnNetwork[],
  isContained: boolean,
): string[] {
  if (addressScope(http.host) === "loopback") return [];
  const isHeard = ({ host }: OwnNetwork) =>
    http.host === "::" || (http.host === "0.0.0.0" ? familyOf(host) === 4 : host === http.host);
  const heard = networks.filter((network) => !network.isLoopback && isHeard(network));
  const warnings = heard.filter((network) => isPublic(network, networks)).map(publicWarning);
  const bridges = new Set(heard.map(({ interfaceName }) => interfaceName).filter(isContainerBridge));
  if (bridges.size > 0)
    warnings.push(
      `containers on ${[...bridges].join(", ")} count as devices of your network; --host ADDRESS listens on one network only`,
    );
  if (isContained && heard.length > 0)
    warnings.push(
      "in a container, forwarded requests may appear to come from the container network: publish the port to your network only (see docs/access.md)",
    );
  return warnings;
}

/** A home router gives each device a public IPv6 address beside its private IPv4 address, so that is not unusual. */
function isPublic({ host, interfaceName }: OwnNetwork, networks: readonly OwnNetwork[]): boolean {
  if (addressScope(host) !== "global") return false;
  const isAtHome = networks.some(
    (other) =>
      other.interfaceName === interfaceName &&
      familyOf(other.host) === 4 &&
      addressScope(other.host) === "private",
  );
  return familyOf(host) === 4 || !isAtHome;
}

function publicWarning({ host, bits }: OwnNetwork): string {
  return `${host} is a public address: every device in its subnet (/${bits}) may play. If these are not your devices, use --host 127.0.0.1.`;
}
