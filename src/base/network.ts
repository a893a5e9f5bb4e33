import { addressBytes, canonicalAddress } from "./address.ts";
import { toHex } from "./bytes.ts";

/** All addresses that share their first `bits` bits with `host`, a canonical address. */
export interface Network {
  readonly host: string;
  /** 0 to 32 for IPv4, 0 to 128 for IPv6. */
  readonly bits: number;
}

/** Reads `192.168.1.0/24`, `fd00::/8`, or one address alone; undefined where it is none of these. */
export function parseNetwork(text: string): Network | undefined {
  const [, address, prefix] = /^([0-9a-fA-F:.]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const host = address === undefined ? undefined : canonicalAddress(address);
  if (address === undefined || host === undefined) return undefined;
  const most = host.includes(":") ? 128 : 32;
  // An IPv4-mapped network counts from the 96 bits that all of them share.
  const shift = address.includes(":") && most === 32 ? 96 : 0;
  const bits = prefix === undefined ? most : Number(prefix) - shift;
  return bits >= 0 && bits <= most ? { host, bits } : undefined;
}

/** Whether a canonical address belongs to a network: compared bit by bit, never as text. */
export function isInNetwork(host: string, { host: start, bits }: Network): boolean {
  const [left, right] = [addressBytes(host), addressBytes(start)];
  if (left === undefined || right === undefined || left.length !== right.length) return false;
  const whole = bits >> 3;
  for (let i = 0; i < whole; i++) if (left[i] !== right[i]) return false;
  const rest = bits & 7;
  return rest === 0 || (left[whole]! ^ right[whole]!) >> (8 - rest) === 0;
}

/**
 * One text for all addresses that one asker may use: a household has 64 bits of IPv6 for itself (RFC 6177), and one IPv4
 * address. For limits by asker.
 */
export function householdOf(host: string): string {
  const bytes = addressBytes(host);
  return bytes === undefined ? host : toHex(bytes.subarray(0, 8));
}
