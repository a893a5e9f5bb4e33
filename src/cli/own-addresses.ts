import { networkInterfaces } from "node:os";
import { addressScope, addressText, type PeerAddress } from "../base/address.ts";
import { SluiceError } from "../base/errors.ts";
import { isContainerBridge } from "../base/network.ts";
import type { ReachSettings } from "../net/contract.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings/settings.ts";

/** A link contains at most this many addresses of this machine. */
const MAX_ADDRESSES = 4;
/** Viewers ask every tracker of a link, so more than this would delay them. */
const MAX_OWN_TRACKERS = 4;

/**
 * Returns the addresses of this machine on its networks, IPv4 first and private addresses before public ones. `bind` limits them to
 * one interface or address; empty means all but container bridges.
 */
export function lanAddresses(bind = ""): string[] {
  const found = Object.entries(networkInterfaces()).flatMap(([name, addresses]) =>
    (addresses ?? []).filter(({ address }) =>
      bind === "" ? !isContainerBridge(name) : bind === name || bind === address,
    ),
  );
  return found
    .filter(({ internal, address }) => !internal && !address.startsWith("fe80:"))
    .sort((a, b) => a.family.localeCompare(b.family) || rank(a.address) - rank(b.address))
    .map(({ address }) => address);
}

function rank(address: string): number {
  return addressScope(address) === "private" ? 0 : 1;
}

/** Returns the peer addresses that links and transport files contain. Behind a strict proxy that is only loopback. */
export function announcedAddresses(config: Config, port: number): PeerAddress[] {
  const { bind, p2pHost } = config;
  if (isHidden(config)) return ownAddresses("127.0.0.1", port, []);
  return ownAddresses(p2pHost, port, lanAddresses(bind));
}

/**
 * Returns where other machines of this network reach a port that listens on `host`: the `lanAddresses` for a wildcard host,
 * or loopback if there are none.
 */
export function ownAddresses(host: string, port: number, lanAddresses: readonly string[]): PeerAddress[] {
  if (addressScope(host) !== "unspecified") return [{ host, port }];
  const reached = reachableAddresses(host, lanAddresses);
  const hosts = reached.length > 0 ? reached.slice(0, MAX_ADDRESSES) : ["127.0.0.1"];
  return hosts.map((each) => ({ host: each, port }));
}

/** Returns the URLs at which other devices reach an HTTP interface that listens on `host`: none for loopback. */
export function networkUrls({ host, port }: PeerAddress, addresses: readonly string[]): string[] {
  const scope = addressScope(host);
  if (scope === "loopback") return [];
  const hosts = scope === "unspecified" ? reachableAddresses(host, addresses) : [host];
  return hosts.map((address) => `http://${addressText({ host: address, port })}/`);
}

/** Returns the announce URLs of this engine's own tracker, which answers UDP at the peer port. */
export function ownTrackers(mode: ReachSettings["tracker"], addresses: readonly PeerAddress[]): string[] {
  if (mode === "off") return [];
  return addresses.slice(0, MAX_OWN_TRACKERS).map((address) => `udp://${addressText(address)}/announce`);
}

/**
 * Returns the lookup of names whose address itself is needed. Behind a strict proxy it rejects with `bad_parameter`, because a
 * DNS query would reveal this machine.
 */
export function ownLookup({ lookup }: Pick<Runtime, "lookup">, config: Config): Runtime["lookup"] {
  if (!isHidden(config)) return lookup;
  return async (name) => {
    const why = `cannot look up ${name} outside of the proxy; use its address (see proxy-strict)`;
    throw new SluiceError("bad_parameter", why);
  };
}

/** The IPv4 wildcard accepts no IPv6. */
function reachableAddresses(host: string, addresses: readonly string[]): string[] {
  return addresses.filter((address) => host === "::" || !address.includes(":"));
}

/** Only the proxy may learn the address of this machine. */
function isHidden({ proxy, proxyStrict }: Config): boolean {
  return proxy !== "" && proxyStrict === "on";
}
