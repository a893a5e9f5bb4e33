import * as crypto from "node:crypto";
import { lookup as lookupCallback } from "node:dns";
import { promisify } from "node:util";
import { canonicalAddress } from "../base/address.ts";
import { assert } from "../base/assert.ts";
import { concatBytes, fromHex } from "../base/bytes.ts";
import {
  type Ed25519Sign,
  type Ed25519VerifierOf,
  isValidPublicKey,
  type Sha256,
} from "../base/signature.ts";
import type { Aes128Gcm, ScryptCost } from "./contract.ts";

/** SHA-1, 20 bytes. Uses `crypto.hash`, which needs no hash object, if the runtime has it. */
export const sha1: (bytes: Uint8Array) => Uint8Array =
  typeof crypto.hash === "function"
    ? (bytes) => crypto.hash("sha1", bytes, "buffer")
    : (bytes) => crypto.createHash("sha1").update(bytes).digest();

/** SHA-256, 32 bytes. */
export const sha256: Sha256 =
  typeof crypto.hash === "function"
    ? (bytes) => crypto.hash("sha256", bytes, "buffer")
    : (bytes) => crypto.createHash("sha256").update(bytes).digest();

/** Cryptographically strong random bytes. */
export function randomBytes(length: number): Uint8Array {
  return new Uint8Array(crypto.randomBytes(length));
}

/** Derives a key from a password (RFC 7914) in a thread of the runtime. */
export function scrypt(password: string, salt: Uint8Array, cost: ScryptCost): Promise<Uint8Array> {
  const { N, r, p, keyBytes } = cost;
  // Twice the memory needed: the runtimes count it differently.
  const options = { N, r, p, maxmem: 256 * N * r };
  return new Promise((resolve, reject) => {
    crypto.scrypt(password, salt, keyBytes, options, (error, key) =>
      error === null || error === undefined ? resolve(new Uint8Array(key)) : reject(error),
    );
  });
}

/** DER prefixes of a 32-byte Ed25519 key (RFC 8410): public in SPKI, private in PKCS #8. */
const SPKI_HEAD = fromHex("302a300506032b6570032100")!;
const PKCS8_HEAD = fromHex("302e020100300506032b657004220420")!;

/** Returns a verifier for a 32-byte Ed25519 public key (RFC 8032), without the cofactor. Bytes that are not a point on the curve
 * verify nothing, and a signature whose first half is not canonical or of small order is invalid. */
export const ed25519Verifier: Ed25519VerifierOf = (publicKey) => {
  // Some runtimes ignore bytes after the key.
  assert(publicKey.length === 32, `a key of ${publicKey.length} bytes`);
  const der = Buffer.from(concatBytes([SPKI_HEAD, publicKey]));
  let key: crypto.KeyObject;
  try {
    key = crypto.createPublicKey({ key: der, format: "der", type: "spki" });
  } catch {
    // Keys come from untrusted peers. Deno decodes the point here, the other runtimes when they verify.
    return () => false;
  }
  // OpenSSL 3.5 refuses a first half of small order, older versions and BoringSSL accept it: peers must not disagree.
  return (message, signature) =>
    signature.length === 64 &&
    isValidPublicKey(signature.subarray(0, 32)) &&
    crypto.verify(null, message, key, signature);
};

/** Derives an Ed25519 key pair from a 32-byte seed (RFC 8032). */
export function ed25519Key(seed: Uint8Array): { readonly publicKey: Uint8Array; readonly sign: Ed25519Sign } {
  assert(seed.length === 32, `a seed of ${seed.length} bytes`);
  const der = Buffer.from(concatBytes([PKCS8_HEAD, seed]));
  const key = crypto.createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const spki = crypto.createPublicKey(key).export({ format: "der", type: "spki" });
  return {
    publicKey: new Uint8Array(spki.subarray(SPKI_HEAD.length)),
    sign: (message) => new Uint8Array(crypto.sign(null, message, key)),
  };
}

const resolve = promisify(lookupCallback);

/** Resolves a name with the system resolver to canonical IP literals; rejects if it has none. */
export async function lookup(name: string): Promise<string[]> {
  const found = await resolve(name, { all: true });
  return found.flatMap(({ address }) => canonicalAddress(address) ?? []);
}

const AES_TAG_BYTES = 16;

/** See `Runtime.aes128Gcm`. On Node, a key object takes a third of the time of raw bytes. */
export function aes128Gcm(key: Uint8Array): Aes128Gcm {
  const keyObject = crypto.createSecretKey(key);
  const options = { authTagLength: AES_TAG_BYTES };
  return {
    seal(nonce, additional, plain) {
      const cipher = crypto.createCipheriv("aes-128-gcm", keyObject, nonce, options);
      cipher.setAAD(additional);
      const encrypted = cipher.update(plain);
      cipher.final();
      const sealed = new Uint8Array(encrypted.length + AES_TAG_BYTES);
      sealed.set(encrypted);
      sealed.set(cipher.getAuthTag(), encrypted.length);
      return sealed;
    },
    open(nonce, additional, sealed) {
      if (sealed.length < AES_TAG_BYTES) return undefined;
      const end = sealed.length - AES_TAG_BYTES;
      const decipher = crypto.createDecipheriv("aes-128-gcm", keyObject, nonce, options);
      decipher.setAAD(additional);
      decipher.setAuthTag(sealed.subarray(end));
      const plain = decipher.update(sealed.subarray(0, end));
      try {
        decipher.final();
        return plain;
      } catch {
        // The tag is wrong.
        return undefined;
      }
    },
  };
}
