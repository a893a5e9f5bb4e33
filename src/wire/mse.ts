import { concatBytes, latin1Bytes } from "../base/bytes.ts";
import type { Sha1 } from "../base/ids.ts";
import { Rc4 } from "./rc4.ts";

/**
 * The words of message stream encryption ("MSE/PE", as the wiki of Vuze specifies it): a Diffie-Hellman exchange, and all
 * after it with RC4, or only the greeting, so that nobody between sees by its first bytes what a connection is.
 */

/** What a peer offers to go on with (`crypto_provide`), or has chosen (`crypto_select`): a bit each. */
export const MSE_METHOD = { plain: 1, rc4: 2 } as const;
export const MSE_BOTH = MSE_METHOD.plain | MSE_METHOD.rc4;

/** A method by its bit. */
export type MseMethod = (typeof MSE_METHOD)[keyof typeof MSE_METHOD];

/** The longest padding of each kind. */
export const MSE_MAX_PAD_BYTES = 512;
/** The verification constant: so many zeros. */
export const MSE_VC_BYTES = 8;
export const MSE_HASH_BYTES = 20;
/** The first bytes of RC4 tell of the key: they are not used. */
const DISCARDED_BYTES = 1024;

const [REQ1, REQ2, REQ3] = [latin1Bytes("req1"), latin1Bytes("req2"), latin1Bytes("req3")];
const [KEY_A, KEY_B] = [latin1Bytes("keyA"), latin1Bytes("keyB")];

/** By what the receiver finds the end of the caller's first padding. */
export function req1Hash(secret: Uint8Array, sha1: Sha1): Uint8Array {
  return sha1(concatBytes([REQ1, secret]));
}

/** What stands for an infohash (20 bytes), known to those who know it. */
export function req2Hash(infohash: Uint8Array, sha1: Sha1): Uint8Array {
  return sha1(concatBytes([REQ2, infohash]));
}

/** What hides {@link req2Hash} on the way. */
export function req3Hash(secret: Uint8Array, sha1: Sha1): Uint8Array {
  return sha1(concatBytes([REQ3, secret]));
}

/** Each byte of `a` with that of `b`: both have the same length. */
export function xored(a: Uint8Array, b: Uint8Array): Uint8Array {
  return a.map((byte, i) => byte ^ b[i]!);
}

/** The two key streams of a connection, from our side. */
export interface MseCiphers {
  readonly ours: Rc4;
  readonly theirs: Rc4;
}

/** The key streams that follow from the secret and the infohash; `isCaller` where we have called. */
export function mseCiphers(
  secret: Uint8Array,
  infohash: Uint8Array,
  isCaller: boolean,
  sha1: Sha1,
): MseCiphers {
  const made = (name: Uint8Array) => {
    const cipher = new Rc4(sha1(concatBytes([name, secret, infohash])));
    cipher.discard(DISCARDED_BYTES);
    return cipher;
  };
  const [a, b] = [made(KEY_A), made(KEY_B)];
  return isCaller ? { ours: a, theirs: b } : { ours: b, theirs: a };
}
