import { toHex } from "./bytes.ts";

/** SHA-256 as a pure function: 32 bytes out. The runtime brings it. */
export type Sha256 = (bytes: Uint8Array) => Uint8Array;

/** Whether a signature (64 bytes) over a message is that of one Ed25519 key (RFC 8032). Never throws. */
export type Ed25519Verify = (message: Uint8Array, signature: Uint8Array) => boolean;

/** The verifier of a public key of 32 bytes; made once for each key, since reading a key costs as much as using it. */
export type Ed25519VerifierOf = (publicKey: Uint8Array) => Ed25519Verify;

/** The signature (64 bytes) of a message with one Ed25519 key (RFC 8032). */
export type Ed25519Sign = (message: Uint8Array) => Uint8Array;

/** The size of an Ed25519 public key. */
const PUBLIC_KEY_BYTES = 32;
/** The size of an Ed25519 signature. */
export const SIGNATURE_BYTES = 64;

/** The points of small order, without the sign bit: whoever uses one as a key vouches for anything. */
const SMALL_ORDER = new Set([
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]);

/** Whether a public key has the right length, is written in its one form (RFC 8032 5.1.3: y < 2^255 - 19), and is no
 * point of small order, with which anybody can sign. Runtimes differ in what they do with others, so they are refused
 * before any of them sees one. */
export function isSoundPublicKey(key: Uint8Array): boolean {
  if (key.length !== PUBLIC_KEY_BYTES) return false;
  // Not slice(): that of a Buffer is the key itself.
  const unsigned = Uint8Array.from(key);
  unsigned[31]! &= 0x7f;
  const hex = toHex(unsigned);
  const isCanonical = unsigned[0]! < 0xed || !/^..(?:ff){30}7f$/.test(hex);
  return isCanonical && !SMALL_ORDER.has(hex);
}
