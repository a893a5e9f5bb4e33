import { concatBytes, latin1Bytes } from "../../base/bytes.ts";
import type { Sha1 } from "../../base/ids.ts";
import { type Ed25519VerifierOf, isValidPublicKey, SIGNATURE_BYTES } from "../../base/signature.ts";
import type { DhtItem, ItemSignature } from "./krpc.ts";

/** Maximum length of the bencoded value of an item, and of a salt (BEP 44). */
export const MAX_ITEM_BYTES = 1000;
export const MAX_SALT_BYTES = 64;
/** Length of the public key of a mutable item. */
export const ITEM_KEY_BYTES = 32;

/** Returns the target under which nodes store an item: SHA-1 of the value, or of key and salt (BEP 44). */
export function itemTarget({ value, signed }: DhtItem, sha1: Sha1): Uint8Array {
  return signed ? mutableTarget(signed.key, signed.salt, sha1) : sha1(value);
}

/** Returns the target of the mutable item with this key and salt (BEP 44). */
export function mutableTarget(key: Uint8Array, salt: Uint8Array, sha1: Sha1): Uint8Array {
  return sha1(salt.length === 0 ? key : concatBytes([key, salt]));
}

/** Returns the message that the signature of a mutable item covers (BEP 44): the salt if not empty, the sequence number, the
 * value. */
export function itemMessage(salt: Uint8Array, sequence: number, value: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = salt.length === 0 ? [] : [latin1Bytes(`4:salt${salt.length}:`), salt];
  return concatBytes([...head, latin1Bytes(`3:seqi${sequence}e1:v`), value]);
}

/** Returns true if the signature of a mutable item is valid. Never throws. */
export function isSignedItem(
  value: Uint8Array,
  signed: ItemSignature,
  verifierOf: Ed25519VerifierOf,
): boolean {
  const { key, salt, sequence, signature } = signed;
  if (signature.length !== SIGNATURE_BYTES || !isValidPublicKey(key)) return false;
  return verifierOf(key)(itemMessage(salt, sequence, value), signature);
}
