import { addressBytes, addressScope } from "../base/address.ts";
import { type Random, randomBelow } from "../base/random.ts";
import { crc32c } from "./crc32c.ts";

/** The length of the id of a node, of an infohash, and of the target of an item (BEP 5, 44). */
export const DHT_ID_BYTES = 20;

/** Less than 0 where `a` is closer to `target` than `b`, more where it is farther: by XOR, as a number (BEP 5). */
export function compareDistance(target: Uint8Array, a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < DHT_ID_BYTES; i++) {
    const difference = (target[i]! ^ a[i]!) - (target[i]! ^ b[i]!);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** How many leading bits two ids share: 0 to 160. */
export function sharedBits(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < DHT_ID_BYTES; i++) {
    const difference = a[i]! ^ b[i]!;
    if (difference !== 0) return 8 * i + Math.clz32(difference) - 24;
  }
  return 8 * DHT_ID_BYTES;
}

/** An id by chance that shares its first `bits` bits with `near`, and not the next. */
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

/** An id for whoever is seen at `host`: one that others can check where the address is a public one (BEP 42), any other
 * where it is not known. */
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

/** Whether an id is one of the few that a node at `host` may choose (BEP 42). At other than public addresses it may have any. */
export function fitsAddress(id: Uint8Array, host: string): boolean {
  if (addressScope(host) !== "global") return true;
  const bytes = addressBytes(host);
  if (!bytes) return false;
  const crc = addressChecksum(bytes, id[19]!);
  return id[0] === crc >>> 24 && id[1] === ((crc >>> 16) & 0xff) && ((id[2]! ^ (crc >>> 8)) & 0xf8) === 0;
}

/** The bits of an address that count: the more of them, the easier it is for one owner to change them. */
const MASK_4 = [0x03, 0x0f, 0x3f, 0xff];
const MASK_6 = [0x01, 0x03, 0x07, 0x0f, 0x1f, 0x3f, 0x7f, 0xff];

function addressChecksum(address: Uint8Array, chance: number): number {
  const mask = address.length === 4 ? MASK_4 : MASK_6;
  const masked = Uint8Array.from(mask, (bits, i) => address[i]! & bits);
  masked[0]! |= (chance & 7) << 5;
  return crc32c(masked);
}

function randomId(random: Random): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: DHT_ID_BYTES }, () => randomBelow(random, 256));
}
