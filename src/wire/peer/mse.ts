import { concatBytes, latin1Bytes } from "../../base/bytes.ts";
import type { Sha1 } from "../../base/ids.ts";
import { Rc4 } from "./rc4.ts";

/**
 * Constants and key derivation of message stream encryption (MSE/PE, as specified in the wiki of Vuze). It starts with a
 * Diffie-Hellman exchange, then encrypts either the handshake or the whole connection with RC4, so that an observer cannot
 * recognize the protocol by its first bytes.
 */

/** Bits of `crypto_provide` (methods the caller offers) and `crypto_select` (the method the receiver chose). */
export const MSE_METHOD = { plain: 1, rc4: 2 } as const;
export const MSE_BOTH = MSE_METHOD.plain | MSE_METHOD.rc4;

/** The bit of one method. */
export type MseMethod = (typeof MSE_METHOD)[keyof typeof MSE_METHOD];

/** Maximum length of each padding. */
export const MSE_MAX_PAD_BYTES = 512;
/** Length of the verification constant, which consists of zeros. */
export const MSE_VC_BYTES = 8;
export const MSE_HASH_BYTES = 20;
/** The first bytes of an RC4 key stream leak information about the key, so MSE discards them. */
const DISCARDED_BYTES = 1024;

const [REQ1, REQ2, REQ3] = [latin1Bytes("req1"), latin1Bytes("req2"), latin1Bytes("req3")];
const [KEY_A, KEY_B] = [latin1Bytes("keyA"), latin1Bytes("keyB")];

/** Returns HASH('req1', S), by which the receiver finds the end of the caller's first padding. */
export function req1Hash(secret: Uint8Array, sha1: Sha1): Uint8Array {
  return sha1(concatBytes([REQ1, secret]));
}

/** Returns HASH('req2', SKEY), which identifies an infohash (20 bytes) without revealing it. */
export function req2Hash(infohash: Uint8Array, sha1: Sha1): Uint8Array {
  return sha1(concatBytes([REQ2, infohash]));
}

/** Returns HASH('req3', S), which is combined with {@link req2Hash} by XOR. */
export function req3Hash(secret: Uint8Array, sha1: Sha1): Uint8Array {
  return sha1(concatBytes([REQ3, secret]));
}

/** Returns the XOR of two arrays of the same length. */
export function xorBytes(a: Uint8Array, b: Uint8Array): Uint8Array {
  return a.map((byte, i) => byte ^ b[i]!);
}

/** The ciphers of a connection. */
export interface MseCiphers {
  /** Encrypts sent bytes. */
  readonly ours: Rc4;
  /** Decrypts received bytes. */
  readonly theirs: Rc4;
}

/** Derives the ciphers of a connection from the shared secret and the infohash.
 * @param isCaller True if this side opened the connection. */
export function mseCiphers(
  secret: Uint8Array,
  infohash: Uint8Array,
  isCaller: boolean,
  sha1: Sha1,
): MseCiphers {
  const cipherOf = (name: Uint8Array) => {
    const cipher = new Rc4(sha1(concatBytes([name, secret, infohash])));
    cipher.discard(DISCARDED_BYTES);
    return cipher;
  };
  const [a, b] = [cipherOf(KEY_A), cipherOf(KEY_B)];
  return isCaller ? { ours: a, theirs: b } : { ours: b, theirs: a };
}
