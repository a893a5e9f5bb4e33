import { equalBytes, fromHex, toHex } from "./bytes.ts";
import type { Sha256 } from "./signature.ts";

/** The SHA-1 of a transport file's info dictionary: 40 lower-case hex digits (BEP 3). */
export type Infohash = string & { readonly __brand: "Infohash" };

/** A content id: 40 lower-case hex digits. See {@link contentIdOf}. */
export type ContentId = string & { readonly __brand: "ContentId" };

/** The SHA-1 of a whole transport file: 40 lower-case hex digits. */
export type FileHash = string & { readonly __brand: "FileHash" };

/** SHA-1 as a pure function that returns 20 bytes. The runtime provides it. */
export type Sha1 = (bytes: Uint8Array) => Uint8Array;

/** Parses an infohash from 40 hex digits or 32 base-32 characters (BEP 9); undefined if `text` is neither. */
export function parseInfohash(text: string): Infohash | undefined {
  if (/^[0-9a-fA-F]{40}$/.test(text)) return text.toLowerCase() as Infohash;
  if (!/^[a-zA-Z2-7]{32}$/.test(text)) return undefined;
  return toHex(fromBase32(text.toUpperCase())) as Infohash;
}

/** Parses a content id from 40 hex digits; undefined if `text` is anything else. */
export function parseContentId(text: string): ContentId | undefined {
  return /^[0-9a-fA-F]{40}$/.test(text) ? (text.toLowerCase() as ContentId) : undefined;
}

/** Returns the content id of files or a live stream: the infohash itself (live protocol: Identities). */
export function contentIdOf(infohash: Infohash): ContentId {
  return infohash as string as ContentId;
}

/** Returns the infohash that a content id of files or a live stream is, unless it is the hash of a transport file (CHOICE(content-id)). */
export function infohashOfContentId(id: ContentId): Infohash {
  return id as string as Infohash;
}

/** Parses the v2 infohash of a `btmh` magnet: a SHA-256 with its multihash prefix, in hex digits. Returns it truncated to 20
 * bytes, the form that peers, trackers and the DHT use (BEP 52); undefined if `text` is anything else. */
export function parseMultihash(text: string): Infohash | undefined {
  const digits = /^1220([0-9a-fA-F]{64})$/.exec(text)?.[1];
  return digits === undefined ? undefined : (digits.slice(0, 40).toLowerCase() as Infohash);
}

/** Converts a 20-byte digest to an infohash. */
export function infohashOf(digest: Uint8Array): Infohash {
  return toHex(digest) as Infohash;
}

/** Returns the 20 bytes of an infohash. */
export function infohashBytes(infohash: Infohash): Uint8Array<ArrayBuffer> {
  return fromHex(infohash)!;
}

/** Returns a hash function for metadata whose infohash may be v1 or v2: it returns the SHA-1 if that equals `infohash`,
 * otherwise the SHA-256 truncated to 20 bytes. */
export function metadataHash(infohash: Infohash, sha1: Sha1, sha256: Sha256): Sha1 {
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
