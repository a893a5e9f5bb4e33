import { DecodeError } from "../base/errors.ts";

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
} as const;

const FORMAT = "live message";

/** What is wrong with a message of the live protocol. */
export function liveFault(kind: number, offset: number, message: string): DecodeError {
  return new DecodeError(FORMAT, offset, `kind ${kind}: ${message}`);
}

/** Throws `DecodeError` where a message has not exactly the length that its fields say. */
export function expectBytes(bytes: Uint8Array, expected: number): void {
  if (bytes.length === expected) return;
  throw liveFault(bytes[0] ?? 0, bytes.length, `expected ${expected} bytes, not ${bytes.length}`);
}

/** Throws `DecodeError` where a message is too short to have its fixed fields. */
export function expectAtLeast(bytes: Uint8Array, least: number): void {
  if (bytes.length >= least) return;
  throw liveFault(bytes[0] ?? 0, bytes.length, `expected ${least} bytes or more, not ${bytes.length}`);
}

/** Checks a stripe's number. Throws `DecodeError`. */
export function checkStripe(bytes: Uint8Array, at: number, stripeCount: number): number {
  const stripe = bytes[at]!;
  if (stripe < stripeCount) return stripe;
  throw liveFault(bytes[0]!, at, `stripe ${stripe} of ${stripeCount}`);
}

/** Checks a set of stripes (bit 0 is stripe 0): some, and none beyond the last. Throws `DecodeError`. */
export function checkMask(mask: number, bytes: Uint8Array, at: number, stripeCount: number): number {
  if (mask !== 0 && mask < 2 ** stripeCount) return mask;
  throw liveFault(bytes[0]!, at, `stripes ${mask.toString(2)} of ${stripeCount}`);
}

/** How many stripes a set has. */
export function stripesIn(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
  return count;
}
