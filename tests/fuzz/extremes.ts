import { latin1Bytes } from "../../src/base/bytes.ts";

const LARGE_BYTES = 64 * 1024;

/** Repeats `unit` up to about 64 KiB, between `head` and `tail`. */
export function repeated(head: string, unit: string, tail = "", maxBytes = LARGE_BYTES): Uint8Array {
  const count = Math.floor((maxBytes - head.length - tail.length) / unit.length);
  return latin1Bytes(head + unit.repeat(count) + tail);
}

/** Returns a bencoded list of `unit` with as many values as the decoder accepts, padded to 64 KiB with a string.
 * @param values Values and keys in a unit.
 * @param bytesPerValue With `base`, the limit of the decoder. */
export function densest(unit: string, values: number, bytesPerValue: number, base: number): Uint8Array {
  const count = Math.floor((base + LARGE_BYTES / bytesPerValue - 8) / values);
  const body = unit.repeat(Math.min(count, Math.floor((LARGE_BYTES - 16) / unit.length)));
  const rest = Math.max(0, LARGE_BYTES - body.length - 10);
  return latin1Bytes(`l${body}${rest}:${"x".repeat(rest)}e`);
}
