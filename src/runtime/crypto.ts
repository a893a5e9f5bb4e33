import * as crypto from "node:crypto";
import { lookup as lookupCallback } from "node:dns";
import { promisify } from "node:util";
import { canonicalAddress } from "../base/address.ts";

/** SHA-1, 20 bytes. `crypto.hash` is one call without a hash object, where the runtime has it. */
export const sha1: (bytes: Uint8Array) => Uint8Array =
  typeof crypto.hash === "function"
    ? (bytes) => crypto.hash("sha1", bytes, "buffer")
    : (bytes) => crypto.createHash("sha1").update(bytes).digest();

/** Cryptographically strong random bytes. */
export function randomBytes(length: number): Uint8Array {
  return new Uint8Array(crypto.randomBytes(length));
}

const resolve = promisify(lookupCallback);

/** All addresses of a name as canonical IP literals, as the system resolves them; rejects where it has none. */
export async function lookup(name: string): Promise<string[]> {
  const found = await resolve(name, { all: true });
  return found.flatMap(({ address }) => canonicalAddress(address) ?? []);
}
