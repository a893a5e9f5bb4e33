import * as crypto from "node:crypto";
import { lookup as lookupCallback } from "node:dns";
import { promisify } from "node:util";
import { canonicalAddress } from "../base/address.ts";
import type { ScryptCost } from "./contract.ts";

/** SHA-1, 20 bytes. `crypto.hash` is one call without a hash object, where the runtime has it. */
export const sha1: (bytes: Uint8Array) => Uint8Array =
  typeof crypto.hash === "function"
    ? (bytes) => crypto.hash("sha1", bytes, "buffer")
    : (bytes) => crypto.createHash("sha1").update(bytes).digest();

/** Cryptographically strong random bytes. */
export function randomBytes(length: number): Uint8Array {
  return new Uint8Array(crypto.randomBytes(length));
}

/** A key out of a password (RFC 7914). The runtimes make it in a thread of their own. */
export function scrypt(password: string, salt: Uint8Array, cost: ScryptCost): Promise<Uint8Array> {
  const { N, r, p, keyBytes } = cost;
  // Twice what is needed: the runtimes count a little differently.
  const options = { N, r, p, maxmem: 256 * N * r };
  return new Promise((resolve, reject) => {
    crypto.scrypt(password, salt, keyBytes, options, (error, key) =>
      error === null || error === undefined ? resolve(new Uint8Array(key)) : reject(error),
    );
  });
}

const resolve = promisify(lookupCallback);

/** All addresses of a name as canonical IP literals, as the system resolves them; rejects where it has none. */
export async function lookup(name: string): Promise<string[]> {
  const found = await resolve(name, { all: true });
  return found.flatMap(({ address }) => canonicalAddress(address) ?? []);
}
