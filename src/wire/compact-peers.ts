import { addressBytes, addressFromBytes, type PeerAddress } from "../base/address.ts";
import { readU16, writeU16 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/** The IP version of a list of compact addresses: 6 bytes each (BEP 23), or 18 (BEP 7). */
export type AddressFamily = 4 | 6;

/** How many bytes one compact address takes. */
export function compactPeerBytes(family: AddressFamily): number {
  return family === 4 ? 6 : 18;
}

/** Reads addresses of 4 or 16 bytes with 2 bytes of port each. Every entry is kept (port 0 too), so that flags beside
 * the list still fit; what comes after the first `maxPeers` is not read. Throws `DecodeError` where the length is not a
 * whole number of entries. */
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

/** The compact form of the addresses of this family; those of the other are left out. */
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
