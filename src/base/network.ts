import { addressBytes, canonicalAddress } from "./address.ts";
import { toHex } from "./bytes.ts";

/** A network: all addresses that share their first `bits` bits with the canonical address `host`. */
export interface Network {
  readonly host: string;
  /** 0 to 32 for IPv4, 0 to 128 for IPv6. */
  readonly bits: number;
}

/** Parses `192.168.1.0/24`, `fd00::/8` or a single address; undefined if `text` is anything else. */
export function parseNetwork(text: string): Network | undefined {
  const [, address, prefix] = /^([0-9a-fA-F:.]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const host = address === undefined ? undefined : canonicalAddress(address);
  if (address === undefined || host === undefined) return undefined;
  const maxBits = host.includes(":") ? 128 : 32;
  // The prefix of an IPv4-mapped network includes the 96 bits before the IPv4 address.
  const shift = address.includes(":") && maxBits === 32 ? 96 : 0;
  const bits = prefix === undefined ? maxBits : Number(prefix) - shift;
  return bits >= 0 && bits <= maxBits ? { host, bits } : undefined;
}

/** Returns true if a canonical address belongs to a network. */
export function isInNetwork(host: string, { host: start, bits }: Network): boolean {
  const [left, right] = [addressBytes(host), addressBytes(start)];
  if (left === undefined || right === undefined || left.length !== right.length) return false;
  const whole = bits >> 3;
  for (let i = 0; i < whole; i++) if (left[i] !== right[i]) return false;
  const rest = bits & 7;
  return rest === 0 || (left[whole]! ^ right[whole]!) >> (8 - rest) === 0;
}

/**
 * Returns the same key for all addresses of one household, for limits by client: a household usually has one IPv4 address and
 * one IPv6 /64 (RFC 6177).
 */
export function householdOf(host: string): string {
  const bytes = addressBytes(host);
  return bytes === undefined ? host : toHex(bytes.subarray(0, 8));
}

/** The /24 of an IPv4 address, the /64 of an IPv6 one: what one party usually holds at least. */
export function networkOf(host: string): string {
  const bytes = addressBytes(host)!;
  return toHex(bytes.subarray(0, bytes.length === 4 ? 3 : 8));
}

/** Names that Docker, Podman, CNI, LXC, Incus and libvirt give to the bridges of containers and virtual machines. */
const BRIDGE = /^(?:docker|podman|cni|cni-podman|lxcbr|lxdbr|incusbr|virbr)\d+$|^br-[0-9a-f]{12}$/;

/** Returns whether an interface with this name is a bridge to containers or virtual machines of this machine. */
export function isContainerBridge(interfaceName: string): boolean {
  return BRIDGE.test(interfaceName);
}
