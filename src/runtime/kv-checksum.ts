import { hash } from "node:crypto";

/** 64 bits as hexadecimal digits. */
const CHECKSUM_DIGITS = 16;
/** The digest of no records. */
export const EMPTY_DIGEST = "0".repeat(CHECKSUM_DIGITS);

/** Computes the checksum of a record. It covers the key, so that it detects an intact value under a wrong key. */
export function checksumOf(key: string, json: string): string {
  return hash("sha256", `${key}\0${json}`, "hex").slice(0, CHECKSUM_DIGITS);
}

/**
 * Adds a record's checksum to the digest of a set of records, or removes it (XOR, so the order does not matter). The
 * digest detects missing and surplus records.
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
