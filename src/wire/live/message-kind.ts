import { DecodeError } from "../../base/errors.ts";

/** The first byte of each message of `sl_live` (live protocol: Messages). */
export const LIVE_KIND = {
  hello: 0,
  header: 1,
  chunk: 2,
  subscribe: 3,
  subscribed: 4,
  refused: 5,
  unsubscribe: 6,
  window: 7,
  paths: 8,
  request: 9,
  cancel: 10,
  lacking: 11,
  headerRequest: 12,
  ping: 13,
  pong: 14,
  stat: 15,
  bye: 16,
  proof: 17,
} as const;

const FORMAT = "live message";

/** Creates the error for a malformed message of the live protocol. */
export function liveMessageError(kind: number, offset: number, message: string): DecodeError {
  return new DecodeError(FORMAT, offset, `kind ${kind}: ${message}`);
}

/** Throws `DecodeError` unless a message has exactly `expected` bytes. */
export function expectBytes(bytes: Uint8Array, expected: number): void {
  if (bytes.length === expected) return;
  throw liveMessageError(bytes[0] ?? 0, bytes.length, `expected ${expected} bytes, not ${bytes.length}`);
}

/** Throws `DecodeError` if a message has fewer than `minBytes` bytes. */
export function expectAtLeast(bytes: Uint8Array, minBytes: number): void {
  if (bytes.length >= minBytes) return;
  throw liveMessageError(
    bytes[0] ?? 0,
    bytes.length,
    `expected at least ${minBytes} bytes, not ${bytes.length}`,
  );
}

/** Reads the stripe number at `at`. Throws `DecodeError` if it is not below `stripeCount`. */
export function checkStripe(bytes: Uint8Array, at: number, stripeCount: number): number {
  const stripe = bytes[at]!;
  if (stripe < stripeCount) return stripe;
  throw liveMessageError(bytes[0]!, at, `expected a stripe below ${stripeCount}, not ${stripe}`);
}

/** Returns a set of stripes (bit 0 is stripe 0). Throws `DecodeError` if it is empty or has a stripe of `stripeCount` or above. */
export function checkMask(mask: number, bytes: Uint8Array, at: number, stripeCount: number): number {
  if (mask !== 0 && mask < 2 ** stripeCount) return mask;
  throw liveMessageError(bytes[0]!, at, `invalid stripe set ${mask.toString(2)} for ${stripeCount} stripes`);
}

/** Returns the number of stripes in a set. */
export function countStripes(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/** The stripes of a set, ascending. */
export function stripesOf(mask: number): number[] {
  const stripes: number[] = [];
  for (let stripe = 0; mask >>> stripe !== 0; stripe++)
    if (((mask >>> stripe) & 1) === 1) stripes.push(stripe);
  return stripes;
}
