import { addressBytes, addressScope } from "../../base/address.ts";
import { crc32Of } from "../../base/crc32.ts";
import { type Random, randomBelow } from "../../base/random.ts";

/** Length of a node id, an infohash and an item target (BEP 5, 44). */
export const DHT_ID_BYTES = 20;

/** Compares the XOR distances of two ids to `target` (BEP 5): negative if `a` is closer than `b`, positive if it is farther. */
export function compareDistance(target: Uint8Array, a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < DHT_ID_BYTES; i++) {
    const difference = (target[i]! ^ a[i]!) - (target[i]! ^ b[i]!);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Returns the number of leading bits that two ids share, 0 to 160. */
export function sharedBits(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < DHT_ID_BYTES; i++) {
    const difference = a[i]! ^ b[i]!;
    if (difference !== 0) return 8 * i + Math.clz32(difference) - 24;
  }
  return 8 * DHT_ID_BYTES;
}

/** Returns a random id that shares exactly its first `bits` bits with `near`. */
export function randomIdNear(near: Uint8Array, bits: number, random: Random): Uint8Array<ArrayBuffer> {
  const id = randomId(random);
  for (let bit = 0; bit <= bits && bit < 8 * DHT_ID_BYTES; bit++) {
    const mask = 0x80 >> (bit & 7);
    const isSet = (near[bit >> 3]! & mask) !== 0;
    const value = bit < bits ? isSet : !isSet;
    id[bit >> 3] = value ? id[bit >> 3]! | mask : id[bit >> 3]! & ~mask;
  }
  return id;
}

/** Returns a random node id. If `host` is a global address, the id is derived from it, so that other nodes can verify it
 * (BEP 42). */
export function nodeIdFor(host: string | undefined, random: Random): Uint8Array<ArrayBuffer> {
  const id = randomId(random);
  const bytes = host !== undefined && addressScope(host) === "global" ? addressBytes(host) : undefined;
  if (!bytes) return id;
  const crc = addressChecksum(bytes, id[19]!);
  id[0] = crc >>> 24;
  id[1] = crc >>> 16;
  id[2] = ((crc >>> 8) & 0xf8) | (id[2]! & 0x07);
  return id;
}

/** Returns true if a node at `host` may use this id (BEP 42). A node at an address that is not global may use any id. */
export function isNodeIdFor(id: Uint8Array, host: string): boolean {
  if (addressScope(host) !== "global") return true;
  const bytes = addressBytes(host);
  if (!bytes) return false;
  const crc = addressChecksum(bytes, id[19]!);
  return id[0] === crc >>> 24 && id[1] === ((crc >>> 16) & 0xff) && ((id[2]! ^ (crc >>> 8)) & 0xf8) === 0;
}

/** The address bits that the id depends on (BEP 42); fewer of those that one owner can vary. */
const MASK_4 = [0x03, 0x0f, 0x3f, 0xff];
const MASK_6 = [0x01, 0x03, 0x07, 0x0f, 0x1f, 0x3f, 0x7f, 0xff];

function addressChecksum(address: Uint8Array, randomByte: number): number {
  const mask = address.length === 4 ? MASK_4 : MASK_6;
  const masked = Uint8Array.from(mask, (bits, i) => address[i]! & bits);
  masked[0]! |= (randomByte & 7) << 5;
  return crc32c(masked);
}

/** Castagnoli (RFC 3720 B.4). */
const crc32c = crc32Of(0x82f63b78);

function randomId(random: Random): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: DHT_ID_BYTES }, () => randomBelow(random, 256));
}
