import { toHex } from "./bytes.ts";

/** SHA-256 as a pure function that returns 32 bytes. The runtime provides it. */
export type Sha256 = (bytes: Uint8Array) => Uint8Array;

/** Verifies a signature (64 bytes) over a message with one Ed25519 key (RFC 8032). Never throws. */
export type Ed25519Verify = (message: Uint8Array, signature: Uint8Array) => boolean;

/** Creates the verifier of a 32-byte public key. Create it once per key: parsing a key costs as much as using it. */
export type Ed25519VerifierOf = (publicKey: Uint8Array) => Ed25519Verify;

/** Signs a message with one Ed25519 key (RFC 8032) and returns the signature, 64 bytes. */
export type Ed25519Sign = (message: Uint8Array) => Uint8Array;

/** Length of an Ed25519 public key. */
const PUBLIC_KEY_BYTES = 32;
/** Length of an Ed25519 signature. */
export const SIGNATURE_BYTES = 64;

/** Points of small order, without the sign bit. With such a key anyone can produce valid signatures. */
const SMALL_ORDER_POINTS = new Set([
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]);

/** Returns true if a public key, or the first half of a signature, has 32 bytes, is canonical (RFC 8032 5.1.3: y < 2^255 - 19), and is not a point of small order.
 * Runtimes treat other keys differently, so check a key before a runtime parses it. */
export function isValidPublicKey(key: Uint8Array): boolean {
  if (key.length !== PUBLIC_KEY_BYTES) return false;
  // Not slice(): on a Buffer it returns a view of the key.
  const unsigned = Uint8Array.from(key);
  unsigned[31]! &= 0x7f;
  const hex = toHex(unsigned);
  const isCanonical = unsigned[0]! < 0xed || !/^..(?:ff){30}7f$/.test(hex);
  return isCanonical && !SMALL_ORDER_POINTS.has(hex);
}
