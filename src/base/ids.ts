import { equalBytes, fromHex, toHex } from "./bytes.ts";
import type { Sha256 } from "./signature.ts";

/** The SHA-1 of a transport file's info dictionary: 40 lower-case hex digits (BEP 3). */
export type Infohash = string & { readonly __brand: "Infohash" };

/** The SHA-1 of a whole transport file: 40 lower-case hex digits. */
export type ContentId = string & { readonly __brand: "ContentId" };

/** SHA-1 as a pure function: 20 bytes out. The runtime brings it. */
export type Sha1 = (bytes: Uint8Array) => Uint8Array;

/** Reads an infohash from 40 hex digits, or from 32 base-32 characters (BEP 9 magnets); undefined where it is neither. */
export function parseInfohash(text: string): Infohash | undefined {
  if (/^[0-9a-fA-F]{40}$/.test(text)) return text.toLowerCase() as Infohash;
  if (!/^[a-zA-Z2-7]{32}$/.test(text)) return undefined;
  return toHex(fromBase32(text.toUpperCase())) as Infohash;
}

/** Reads a content id from 40 hex digits; undefined where it is not one. */
export function parseContentId(text: string): ContentId | undefined {
  return /^[0-9a-fA-F]{40}$/.test(text) ? (text.toLowerCase() as ContentId) : undefined;
}

/** Reads the infohash of version 2 out of a `btmh` magnet: a SHA-256 with its multihash prefix, in hex digits. Cut to 20 bytes
 * it is what peers, trackers and the DHT know (BEP 52). Undefined where it is none. */
export function parseMultihash(text: string): Infohash | undefined {
  const digits = /^1220([0-9a-fA-F]{64})$/.exec(text)?.[1];
  return digits === undefined ? undefined : (digits.slice(0, 40).toLowerCase() as Infohash);
}

/** The infohash whose 20 bytes are given. */
export function infohashOf(digest: Uint8Array): Infohash {
  return toHex(digest) as Infohash;
}

/** The 20 bytes of an infohash. */
export function infohashBytes(infohash: Infohash): Uint8Array<ArrayBuffer> {
  return fromHex(infohash)!;
}

/** The hash of metadata whose infohash is of either version: SHA-1, or SHA-256 cut to 20 bytes where that is what fits. */
export function eitherHash(infohash: Infohash, sha1: Sha1, sha256: Sha256): Sha1 {
  const wanted = infohashBytes(infohash);
  return (bytes) => {
    const digest = sha1(bytes);
    return equalBytes(digest, wanted) ? digest : sha256(bytes).subarray(0, 20);
  };
}

function fromBase32(text: string): Uint8Array {
  const bytes = new Uint8Array(20);
  let bits = 0;
  let held = 0;
  let at = 0;
  for (const character of text) {
    const value = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(character);
    held = (held << 5) | value;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = held >>> bits;
      held &= (1 << bits) - 1;
    }
  }
  return bytes;
}
