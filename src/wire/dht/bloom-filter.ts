import { addressBytes } from "../../base/address.ts";
import { Bits } from "../../base/bits.ts";
import type { Sha1 } from "../../base/ids.ts";

/** Size of a filter (BEP 33). */
const FILTER_BITS = 2048;

/** Builds a Bloom filter of addresses (BEP 33): 256 bytes, two bits per address, least significant bit of each byte first. */
export function addressFilter(hosts: Iterable<string>, sha1: Sha1): Uint8Array<ArrayBuffer> {
  const bits = new Bits(FILTER_BITS);
  for (const host of hosts) {
    const bytes = addressBytes(host);
    if (!bytes) continue;
    const hash = sha1(bytes);
    for (const at of [0, 2]) bits.set(reversedInByte((hash[at]! | (hash[at + 1]! << 8)) % FILTER_BITS));
  }
  return bits.bytes;
}

/** A filter counts bits from the least significant of each byte, `Bits` from the most significant. */
function reversedInByte(bit: number): number {
  return (bit & ~7) | (7 - (bit & 7));
}
