import { fromHex } from "./bytes.ts";

/** By what a mutable item of the DHT is found (BEP 44), as a magnet names it (BEP 46). */
export interface ItemName {
  /** The public key of who signs it, 32 bytes. */
  readonly key: Uint8Array;
  /** At most 64 bytes; empty where the link has none. */
  readonly salt: Uint8Array;
}

const KEY_BYTES = 32;
const MAX_SALT_BYTES = 64;

/** Reads what a magnet gives as `xs` (`urn:btpk:` and 64 hex digits) and as `s` (hex digits, or nothing); undefined where
 * that is no name: with another salt it would be another item. */
export function parseItemName(source: string, salt: string): ItemName | undefined {
  const key = fromHex(/^\s*urn:btpk:(.*?)\s*$/i.exec(source)?.[1] ?? "");
  const saltBytes = fromHex(salt.trim());
  if (key?.length !== KEY_BYTES || !saltBytes || saltBytes.length > MAX_SALT_BYTES) return undefined;
  return { key, salt: saltBytes };
}

/** Whether an `xs` means to be the name of an item, well written or not. */
export function isItemSource(source: string): boolean {
  return /^\s*urn:btpk:/i.test(source);
}
