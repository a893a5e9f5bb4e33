import { latin1Bytes } from "../../src/base/bytes.ts";

const LARGE_BYTES = 64 * 1024;

/** `unit` again and again, up to about 64 KiB, between `head` and `tail`. */
export function repeated(head: string, unit: string, tail = "", maxBytes = LARGE_BYTES): Uint8Array {
  const count = Math.floor((maxBytes - head.length - tail.length) / unit.length);
  return latin1Bytes(head + unit.repeat(count) + tail);
}

/** A bencoded list of `unit` up to the number of values that decoders take, filled up to 64 KiB by one string. `values`
 * says how many values (and keys) a unit has, `bytesPerValue` and `base` what the decoder's limit is. */
export function densest(unit: string, values: number, bytesPerValue: number, base: number): Uint8Array {
  const count = Math.floor((base + LARGE_BYTES / bytesPerValue - 8) / values);
  const body = unit.repeat(Math.min(count, Math.floor((LARGE_BYTES - 16) / unit.length)));
  const rest = Math.max(0, LARGE_BYTES - body.length - 10);
  return latin1Bytes(`l${body}${rest}:${"x".repeat(rest)}e`);
}
