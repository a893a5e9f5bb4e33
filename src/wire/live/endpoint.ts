import { addressBytes, addressFromBytes, type PeerAddress } from "../../base/address.ts";
import { assert } from "../../base/assert.ts";
import { readU16, writeU16 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";

/** Length of an endpoint: 16 bytes of IPv6 or IPv4-mapped address (RFC 4291 2.5.5.2), 2 bytes of port. */
export const ENDPOINT_BYTES = 18;

/** A peer that another peer recommends: its address, how many more stripes it would send, and how far it lags. */
export interface LiveCandidate {
  readonly address: PeerAddress;
  readonly freeSlots: number;
  readonly lagMs: number;
}

/** Length of a candidate: an endpoint, and 2 bytes each for free slots and lag. */
export const CANDIDATE_BYTES = ENDPOINT_BYTES + 4;

/** Writes one endpoint at `at`. */
export function writeEndpoint(bytes: Uint8Array, at: number, { host, port }: PeerAddress): void {
  const address = addressBytes(host);
  assert(address !== undefined, `expected an IP address, not ${host}`);
  if (address.length === 4) {
    bytes[at + 10] = 0xff;
    bytes[at + 11] = 0xff;
  }
  bytes.set(address, at + 16 - address.length);
  writeU16(bytes, at + 16, port);
}

/** Reads one endpoint at `at`. The caller has checked the length. */
export function readEndpoint(bytes: Uint8Array, at: number): PeerAddress {
  return { host: addressFromBytes(bytes.subarray(at, at + 16)), port: readU16(bytes, at + 16) };
}

/** Encodes a list of endpoints. */
export function encodeEndpoints(addresses: readonly PeerAddress[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(addresses.length * ENDPOINT_BYTES);
  for (const [i, address] of addresses.entries()) writeEndpoint(bytes, i * ENDPOINT_BYTES, address);
  return bytes;
}

/** Decodes a list of endpoints and skips those with port 0. Throws `DecodeError` on more than `maxCount` or on a partial entry. */
export function decodeEndpoints(bytes: Uint8Array, maxCount: number): PeerAddress[] {
  const count = bytes.length / ENDPOINT_BYTES;
  if (!Number.isInteger(count) || count > maxCount) {
    throw new DecodeError(
      "endpoints",
      bytes.length,
      `expected at most ${maxCount} entries of ${ENDPOINT_BYTES} bytes`,
    );
  }
  const addresses = Array.from({ length: count }, (_, i) => readEndpoint(bytes, i * ENDPOINT_BYTES));
  return addresses.filter(({ port }) => port !== 0);
}

/** Writes candidates at `at`. The caller has allocated the space. */
export function writeCandidates(bytes: Uint8Array, at: number, candidates: readonly LiveCandidate[]): void {
  for (const [i, { address, freeSlots, lagMs }] of candidates.entries()) {
    const entryAt = at + i * CANDIDATE_BYTES;
    writeEndpoint(bytes, entryAt, address);
    writeU16(bytes, entryAt + ENDPOINT_BYTES, Math.min(freeSlots, 0xffff));
    writeU16(bytes, entryAt + ENDPOINT_BYTES + 2, Math.min(lagMs, 0xffff));
  }
}

/** Reads `count` candidates at `at` and skips those with port 0. The caller has checked the length. */
export function readCandidates(bytes: Uint8Array, at: number, count: number): LiveCandidate[] {
  const candidates = Array.from({ length: count }, (_, i) => {
    const entryAt = at + i * CANDIDATE_BYTES;
    return {
      address: readEndpoint(bytes, entryAt),
      freeSlots: readU16(bytes, entryAt + ENDPOINT_BYTES),
      lagMs: readU16(bytes, entryAt + ENDPOINT_BYTES + 2),
    };
  });
  return candidates.filter(({ address }) => address.port !== 0);
}
