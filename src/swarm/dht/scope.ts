import {
  type AddressScope,
  addressBytes,
  addressScope,
  addressText,
  type PeerAddress,
} from "../../base/address.ts";
import { toHex } from "../../base/bytes.ts";

/** Where an address is, as far as the DHT cares. */
export interface Place {
  readonly scope: AddressScope;
  /** One text for all that probably are one machine or household: a public IPv4 address, a /64 of IPv6; elsewhere, where many
   * nodes may run on one machine, address and port. */
  readonly owner: string;
  /** One text for all public addresses that probably have one owner: /24, or /48 of IPv6. Undefined elsewhere. */
  readonly network: string | undefined;
}

/** Where an address is. */
export function placeOf(address: PeerAddress): Place {
  const { host } = address;
  const scope = addressScope(host);
  if (scope !== "global") return { scope, owner: addressText(address), network: undefined };
  if (!host.includes(":")) return { scope, owner: host, network: host.slice(0, host.lastIndexOf(".")) };
  const bytes = addressBytes(host)!;
  return { scope, owner: toHex(bytes.subarray(0, 8)), network: toHex(bytes.subarray(0, 6)) };
}

/**
 * Whether an address of one scope may be told to (or believed from) somebody in another: addresses of a home mean nothing
 * elsewhere, and who names one from afar wants us to knock at our neighbours.
 */
export function isTellable(scope: AddressScope, other: AddressScope): boolean {
  if (scope === "global") return true;
  if (scope === "private") return other === "private" || other === "loopback";
  return scope === "loopback" && other === "loopback";
}

/** Whether a node can live at an address at all. Link-local ones lack the name of their link. */
export function isUsable(scope: AddressScope): boolean {
  return scope === "global" || scope === "private" || scope === "loopback";
}
