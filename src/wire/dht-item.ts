import { concatBytes, latin1Bytes } from "../base/bytes.ts";
import type { Sha1 } from "../base/ids.ts";
import { type Ed25519VerifierOf, isSoundPublicKey, SIGNATURE_BYTES } from "../base/signature.ts";
import type { DhtItem, ItemSignature } from "./krpc.ts";

/** The longest bencoded value of an item, and the longest salt (BEP 44). */
export const MAX_ITEM_BYTES = 1000;
export const MAX_SALT_BYTES = 64;
/** The size of the key of a mutable item. */
export const ITEM_KEY_BYTES = 32;

/** Where an item is kept: SHA-1 over the value, or over key and salt (BEP 44). */
export function itemTarget({ value, signed }: DhtItem, sha1: Sha1): Uint8Array {
  return signed ? mutableTarget(signed.key, signed.salt, sha1) : sha1(value);
}

/** Where the mutable items of a key and salt are kept (BEP 44). */
export function mutableTarget(key: Uint8Array, salt: Uint8Array, sha1: Sha1): Uint8Array {
  return sha1(salt.length === 0 ? key : concatBytes([key, salt]));
}

/** What the signature of a mutable item is over (BEP 44): the salt where there is one, the sequence number, the value. */
export function itemMessage(salt: Uint8Array, sequence: number, value: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = salt.length === 0 ? [] : [latin1Bytes(`4:salt${salt.length}:`), salt];
  return concatBytes([...head, latin1Bytes(`3:seqi${sequence}e1:v`), value]);
}

/** Whether the key of a mutable item signed it. Never throws. */
export function isSignedItem(
  value: Uint8Array,
  signed: ItemSignature,
  verifierOf: Ed25519VerifierOf,
): boolean {
  const { key, salt, sequence, signature } = signed;
  if (signature.length !== SIGNATURE_BYTES || !isSoundPublicKey(key)) return false;
  return verifierOf(key)(itemMessage(salt, sequence, value), signature);
}
