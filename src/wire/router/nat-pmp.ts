import { addressFromBytes } from "../../base/address.ts";
import { readU16, readU32, writeU16, writeU32 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Instant } from "../../base/time.ts";

/** UDP port of routers for NAT-PMP and PCP (RFC 6886 3.1, RFC 6887 19.1). */
export const ROUTER_PORT = 5351;

/** Transport protocol of a mapping. */
export type MappedProtocol = "tcp" | "udp";

/** A response of a router (RFC 6886 3.2, 3.3, 3.5). */
export type NatPmpResponse = {
  /** 0 for success; see {@link natPmpResultText}. */
  readonly result: number;
  /** Seconds since the router lost its mappings. */
  readonly epochSeconds: number;
} & (
  | { readonly kind: "address"; readonly address: string }
  | {
      readonly kind: "map";
      readonly protocol: MappedProtocol;
      readonly internalPort: number;
      /** 0 if nothing was mapped. */
      readonly externalPort: number;
      readonly lifetimeSeconds: number;
    }
);

/** A mapping to request. */
export interface NatPmpMapping {
  readonly protocol: MappedProtocol;
  readonly internalPort: number;
  /** Preferred port; the router may assign another. */
  readonly externalPort: number;
  /** 0 deletes the mapping. */
  readonly lifetimeSeconds: number;
}

const FORMAT = "NAT-PMP response";
const VERSION = 0;
const OPCODES = { address: 0, udp: 1, tcp: 2 } as const;
/** A response has the opcode of its request plus this. */
const RESPONSE_FLAG = 128;
const [ADDRESS_BYTES, MAP_BYTES] = [12, 16] as const;
/** Result codes (RFC 6886 3.5). */
const RESULT_TEXTS = [
  "success",
  "unsupported version",
  "port mapping is disabled on the router",
  "the router has no connection",
  "the router has no space for more mappings",
  "unsupported request",
] as const;

/** Encodes a request for the external address. */
export function encodeNatPmpAddressRequest(): Uint8Array<ArrayBuffer> {
  return new Uint8Array([VERSION, OPCODES.address]);
}

/** Encodes a request to create (RFC 6886 3.3) or delete (3.4) a mapping. */
export function encodeNatPmpMapRequest(mapping: NatPmpMapping): Uint8Array<ArrayBuffer> {
  const { protocol, internalPort, externalPort, lifetimeSeconds } = mapping;
  const bytes = new Uint8Array(12);
  bytes[0] = VERSION;
  bytes[1] = OPCODES[protocol];
  writeU16(bytes, 4, internalPort);
  writeU16(bytes, 6, lifetimeSeconds === 0 ? 0 : externalPort);
  writeU32(bytes, 8, lifetimeSeconds);
  return bytes;
}

/** Decodes a response. Throws `DecodeError`. */
export function decodeNatPmpResponse(bytes: Uint8Array): NatPmpResponse {
  if (bytes.length < 8) throw new DecodeError(FORMAT, bytes.length, "expected at least 8 bytes");
  if (bytes[0] !== VERSION) throw new DecodeError(FORMAT, 0, `expected version 0, got ${bytes[0]}`);
  const opcode = bytes[1]! - RESPONSE_FLAG;
  const [result, epochSeconds] = [readU16(bytes, 2), readU32(bytes, 4)];
  if (opcode === OPCODES.address) {
    // A failed response may be shorter (RFC 6886 3.5).
    if (result !== 0) return { kind: "address", result, epochSeconds, address: "0.0.0.0" };
    expectBytes(bytes, ADDRESS_BYTES);
    return { kind: "address", result, epochSeconds, address: addressFromBytes(bytes.subarray(8, 12)) };
  }
  if (opcode !== OPCODES.tcp && opcode !== OPCODES.udp)
    throw new DecodeError(FORMAT, 1, `unknown opcode ${bytes[1]}`);
  expectBytes(bytes, MAP_BYTES);
  return {
    kind: "map",
    result,
    epochSeconds,
    protocol: opcode === OPCODES.tcp ? "tcp" : "udp",
    internalPort: readU16(bytes, 8),
    externalPort: readU16(bytes, 10),
    lifetimeSeconds: readU32(bytes, 12),
  };
}

/** Describes a result other than 0. */
export function natPmpResultText(result: number): string {
  return RESULT_TEXTS[result] ?? `result code ${result}`;
}

function expectBytes(bytes: Uint8Array, length: number): void {
  if (bytes.length < length) throw new DecodeError(FORMAT, bytes.length, `expected ${length} bytes`);
}

/** The epoch of a router (seconds since it lost its mappings), and when it was received. */
export interface RouterEpoch {
  readonly epochSeconds: number;
  readonly receivedAt: Instant;
}

/** Tolerance for delayed responses and clock drift (RFC 6887 8.5). */
const SLACK_SECONDS = 2;
const SLACK_SHARE = 1 / 16;

/** Returns true if a router restarted, and lost its mappings, between two responses (RFC 6887 8.5). */
export function hasRouterRestarted(before: RouterEpoch, now: RouterEpoch): boolean {
  const ours = (now.receivedAt - before.receivedAt) / 1000;
  const theirs = now.epochSeconds - before.epochSeconds;
  if (theirs < -1) return true;
  return (
    ours + SLACK_SECONDS < theirs * (1 - SLACK_SHARE) || theirs + SLACK_SECONDS < ours * (1 - SLACK_SHARE)
  );
}
