import { addressBytes } from "../base/address.ts";
import { Bits } from "../base/bits.ts";
import type { Sha1 } from "../base/ids.ts";

/** The size of a filter (BEP 33). */
const FILTER_BITS = 2048;

/** A Bloom filter of addresses (BEP 33): 256 bytes, two bits for each, in the order of the least bit first. */
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

/** A filter counts from the least bit of each byte, `Bits` from the highest. */
function reversedInByte(bit: number): number {
  return (bit & ~7) | (7 - (bit & 7));
}
