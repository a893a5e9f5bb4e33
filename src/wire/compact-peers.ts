import { addressBytes, addressFromBytes, type PeerAddress } from "../base/address.ts";
import { readU16, writeU16 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/** IP version of a list of compact addresses: 6 bytes per address (BEP 23) or 18 (BEP 7). */
export type AddressFamily = 4 | 6;

/** Returns the size of one compact address in bytes. */
export function compactPeerBytes(family: AddressFamily): number {
  return family === 4 ? 6 : 18;
}

/** Decodes addresses of 4 or 16 bytes, each followed by 2 bytes of port. Keeps every entry, also with port 0, so that the indices
 * match a parallel list of flags; reads at most `maxPeers`. Throws `DecodeError` on a partial entry. */
export function decodeCompactPeers(
  bytes: Uint8Array,
  family: AddressFamily,
  maxPeers = Number.POSITIVE_INFINITY,
): PeerAddress[] {
  const entryBytes = compactPeerBytes(family);
  if (bytes.length % entryBytes !== 0) {
    throw new DecodeError("compact peers", bytes.length, `expected a multiple of ${entryBytes} bytes`);
  }
  const addresses: PeerAddress[] = [];
  const end = Math.min(bytes.length, maxPeers * entryBytes);
  for (let at = 0; at < end; at += entryBytes) {
    const host = addressFromBytes(bytes.subarray(at, at + entryBytes - 2));
    addresses.push({ host, port: readU16(bytes, at + entryBytes - 2) });
  }
  return addresses;
}

/** Encodes the addresses of one family; addresses of the other family are left out. */
export function encodeCompactPeers(
  addresses: readonly PeerAddress[],
  family: AddressFamily,
): Uint8Array<ArrayBuffer> {
  const entryBytes = compactPeerBytes(family);
  const bytes = new Uint8Array(addresses.length * entryBytes);
  let at = 0;
  for (const address of addresses) {
    const host = addressBytes(address.host);
    if (host?.length !== entryBytes - 2) continue;
    bytes.set(host, at);
    writeU16(bytes, at + host.length, address.port);
    at += entryBytes;
  }
  return bytes.slice(0, at);
}
