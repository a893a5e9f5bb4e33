import { fromHex } from "./bytes.ts";

/** Identifies a mutable DHT item (BEP 44), as written in a magnet (BEP 46). */
export interface ItemName {
  /** Ed25519 public key of the publisher, 32 bytes. */
  readonly key: Uint8Array;
  /** At most 64 bytes; empty if the link has none. */
  readonly salt: Uint8Array;
}

const KEY_BYTES = 32;
const MAX_SALT_BYTES = 64;

/** Parses the `xs` (`urn:btpk:` and 64 hex digits) and `s` (hex digits or empty) parameters of a magnet. Returns undefined if
 * either is malformed: a wrong salt would identify another item. */
export function parseItemName(source: string, salt: string): ItemName | undefined {
  const key = fromHex(/^\s*urn:btpk:(.*?)\s*$/i.exec(source)?.[1] ?? "");
  const saltBytes = fromHex(salt.trim());
  if (key?.length !== KEY_BYTES || !saltBytes || saltBytes.length > MAX_SALT_BYTES) return undefined;
  return { key, salt: saltBytes };
}

/** Returns true if an `xs` parameter starts like a public key, well-formed or not. */
export function isPublicKeyUrn(source: string): boolean {
  return /^\s*urn:btpk:/i.test(source);
}
