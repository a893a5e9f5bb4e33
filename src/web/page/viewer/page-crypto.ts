import { Point } from "@noble/ed25519";
import { sha1 as legacySha1 } from "@noble/hashes/legacy.js";
import { sha512, sha256 as webSha256 } from "@noble/hashes/sha2.js";
import { assert } from "../../../base/assert.ts";
import { concatBytes, equalBytes } from "../../../base/bytes.ts";
import type { Sha1 } from "../../../base/ids.ts";
import { type Ed25519VerifierOf, isValidPublicKey, type Sha256 } from "../../../base/signature.ts";

/** SHA-1, 20 bytes. */
export const sha1: Sha1 = (bytes) => legacySha1(bytes);

/** SHA-256, 32 bytes. */
export const sha256: Sha256 = (bytes) => webSha256(bytes);

const ORDER = Point.CURVE().n;

/**
 * Returns a verifier for a 32-byte Ed25519 public key, by the rules of the live protocol (Signatures): without the cofactor. WebCrypto is
 * not used: it is absent in insecure contexts, it is asynchronous, and browsers differ in the cases that RFC 8032 leaves open.
 */
export const ed25519Verifier: Ed25519VerifierOf = (publicKey) => {
  assert(publicKey.length === 32, `a key of ${publicKey.length} bytes`);
  const keyBytes = publicKey.slice();
  let key: Point;
  try {
    key = Point.fromBytes(keyBytes);
  } catch {
    return () => false; // Not a point of the curve.
  }
  return (message, signature) => {
    if (signature.length !== 64) return false;
    const r = signature.subarray(0, 32);
    const s = littleEndian(signature.subarray(32));
    if (!isValidPublicKey(r) || s >= ORDER) return false;
    const k = littleEndian(sha512(concatBytes([r, keyBytes, message]))) % ORDER;
    const expected = Point.BASE.multiply(s, false).subtract(key.multiply(k, false));
    return equalBytes(expected.toBytes(), r);
  };
};

function littleEndian(bytes: Uint8Array): bigint {
  return bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}
