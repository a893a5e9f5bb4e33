import {
  type AddressScope,
  addressBytes,
  addressScope,
  addressText,
  type PeerAddress,
} from "../../base/address.ts";
import { toHex } from "../../base/bytes.ts";

/** Properties of an address that limits depend on. */
export interface Place {
  readonly scope: AddressScope;
  /** Identifies the probable machine or household: the public IPv4 address, or the /64 of a public IPv6 address. For other
   * scopes it is address and port, because many nodes may run on one machine. */
  readonly owner: string;
  /** Identifies the probable owner of a public network: the /24, or the /48 of IPv6. Undefined for other scopes. */
  readonly network: string | undefined;
}

/** Returns the scope, owner and network of an address. */
export function placeOf(address: PeerAddress): Place {
  const { host } = address;
  const scope = addressScope(host);
  if (scope !== "global") return { scope, owner: addressText(address), network: undefined };
  if (!host.includes(":")) return { scope, owner: host, network: host.slice(0, host.lastIndexOf(".")) };
  const bytes = addressBytes(host)!;
  return { scope, owner: toHex(bytes.subarray(0, 8)), network: toHex(bytes.subarray(0, 6)) };
}

/**
 * Returns true if an address of `scope` may be sent to, or accepted from, a node of scope `other`. Local addresses are
 * meaningless in other networks, and a remote node could report one to make this engine attack local devices.
 */
export function isShareable(scope: AddressScope, other: AddressScope): boolean {
  if (scope === "global") return true;
  if (scope === "private") return other === "private" || other === "loopback";
  return scope === "loopback" && other === "loopback";
}

/** Returns true if a node can have an address of this scope. Link-local addresses do not name their network interface. */
export function isUsable(scope: AddressScope): boolean {
  return scope === "global" || scope === "private" || scope === "loopback";
}
