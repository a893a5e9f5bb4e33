import { addressBytes, addressFromBytes, type PeerAddress } from "../base/address.ts";
import { assert } from "../base/assert.ts";
import { readU16, writeU16 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/** 16 bytes of IPv6 address, IPv4 ones mapped (RFC 4291 2.5.5.2), and 2 of port: one form for both families. */
export const ENDPOINT_BYTES = 18;

/** A peer that another one recommends: where it listens, how many stripes it would still send, how late it is. */
export interface LiveCandidate {
  readonly address: PeerAddress;
  readonly freeSlots: number;
  readonly lagMs: number;
}

/** An endpoint, and 2 bytes each of free slots and lag. */
export const CANDIDATE_BYTES = ENDPOINT_BYTES + 4;

/** Writes one endpoint at `at`. */
export function writeEndpoint(bytes: Uint8Array, at: number, { host, port }: PeerAddress): void {
  const address = addressBytes(host);
  assert(address !== undefined, `${host} is no address`);
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

/** A list of endpoints one after another. */
export function encodeEndpoints(addresses: readonly PeerAddress[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(addresses.length * ENDPOINT_BYTES);
  for (const [i, address] of addresses.entries()) writeEndpoint(bytes, i * ENDPOINT_BYTES, address);
  return bytes;
}

/** Reads a list of endpoints, those that nobody can connect to (port 0) left out. Throws `DecodeError` where there are
 * more than `most`, or part of one. */
export function decodeEndpoints(bytes: Uint8Array, most: number): PeerAddress[] {
  const count = bytes.length / ENDPOINT_BYTES;
  if (!Number.isInteger(count) || count > most) {
    throw new DecodeError(
      "endpoints",
      bytes.length,
      `expected at most ${most} entries of ${ENDPOINT_BYTES} bytes`,
    );
  }
  const addresses = Array.from({ length: count }, (_, i) => readEndpoint(bytes, i * ENDPOINT_BYTES));
  return addresses.filter(({ port }) => port !== 0);
}

/** Writes candidates from `at` on; the caller has made room. */
export function writeCandidates(bytes: Uint8Array, at: number, candidates: readonly LiveCandidate[]): void {
  for (const [i, { address, freeSlots, lagMs }] of candidates.entries()) {
    const place = at + i * CANDIDATE_BYTES;
    writeEndpoint(bytes, place, address);
    writeU16(bytes, place + ENDPOINT_BYTES, Math.min(freeSlots, 0xffff));
    writeU16(bytes, place + ENDPOINT_BYTES + 2, Math.min(lagMs, 0xffff));
  }
}

/** Reads `count` candidates from `at` on, those that nobody can connect to left out. The caller has checked the length. */
export function readCandidates(bytes: Uint8Array, at: number, count: number): LiveCandidate[] {
  const candidates = Array.from({ length: count }, (_, i) => {
    const place = at + i * CANDIDATE_BYTES;
    return {
      address: readEndpoint(bytes, place),
      freeSlots: readU16(bytes, place + ENDPOINT_BYTES),
      lagMs: readU16(bytes, place + ENDPOINT_BYTES + 2),
    };
  });
  return candidates.filter(({ address }) => address.port !== 0);
}
