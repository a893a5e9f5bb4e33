import { hash } from "node:crypto";

/** A checksum has 64 bits, as hexadecimal digits: damage that it does not show is not met in practice. */
export const CHECKSUM_DIGITS = 16;
/** The digest of no records. */
export const EMPTY_DIGEST = "0".repeat(CHECKSUM_DIGITS);

/** The checksum of one record: of its key too, so that a whole value under a wrong key is noticed. */
export function checksumOf(key: string, json: string): string {
  return hash("sha256", `${key}\0${json}`, "hex").slice(0, CHECKSUM_DIGITS);
}

/**
 * Adds a record's checksum to a digest of many, or takes it out again: the same digest comes out in whatever order. It
 * tells whether all records are there that should be, and no others.
 */
export function toggled(digest: string, checksum: string): string {
  const half = CHECKSUM_DIGITS / 2;
  const part = (from: number) => {
    const bits =
      Number.parseInt(digest.slice(from, from + half), 16) ^
      Number.parseInt(checksum.slice(from, from + half), 16);
    return (bits >>> 0).toString(16).padStart(half, "0");
  };
  return part(0) + part(half);
}
