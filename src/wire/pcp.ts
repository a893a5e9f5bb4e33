import { addressBytes, addressFromBytes } from "../base/address.ts";
import { assert } from "../base/assert.ts";
import { readU16, readU32, writeU16, writeU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import type { MappedProtocol, NatPmpMapping } from "./nat-pmp.ts";

/** A wish for a mapping (RFC 6887 11.1). */
export interface PcpMapping extends NatPmpMapping {
  /** 12 bytes by which the router knows that a later wish is of who made the mapping. */
  readonly nonce: Uint8Array;
  /** Ours, as the router sees it. */
  readonly clientAddress: string;
}

/** What a router answers to a wish (RFC 6887 7.2, 11.1), or what it answers instead. */
export type PcpAnswer =
  | {
      readonly kind: "map";
      /** 0: done. See {@link pcpProblem}. */
      readonly result: number;
      /** Of the mapping; of the refusal where it is one. */
      readonly lifetimeSeconds: number;
      readonly epochSeconds: number;
      readonly nonce: Uint8Array;
      readonly protocol: MappedProtocol;
      readonly internalPort: number;
      readonly externalPort: number;
      readonly externalAddress: string;
    }
  /** It speaks another version: NAT-PMP where that is 0 (RFC 6887 9, Appendix A). */
  | { readonly kind: "version"; readonly version: number };

const FORMAT = "PCP answer";
const VERSION = 2;
const MAP = 1;
const IS_ANSWER = 128;
const UNSUPPORTED_VERSION = 1;
const [HEAD_BYTES, MAP_BYTES] = [24, 36] as const;
/** RFC 6887 7. */
const MAX_BYTES = 1100;
const NONCE_BYTES = 12;
/** Numbers of the protocols (IANA). */
const PROTOCOLS = { tcp: 6, udp: 17 } as const;
/** RFC 6887 7.4. */
const PROBLEMS = [
  "done",
  "it does not speak this version",
  "it is set not to do so",
  "it could not read the question",
  "it does not know that question",
  "it does not know that option",
  "it could not read an option",
  "it has no connection itself",
  "it has no room for more mappings",
  "it does not map that protocol",
  "this computer has as many mappings as it may",
  "it cannot give that port",
  "it sees us at another address: there is a further router between",
  "too many remote peers",
] as const;

/** Asks for a port to be mapped to ours; a lifetime of 0 ends the mapping. */
export function encodePcpMap(mapping: PcpMapping): Uint8Array<ArrayBuffer> {
  const { nonce, clientAddress, protocol, internalPort, externalPort, lifetimeSeconds } = mapping;
  assert(nonce.length === NONCE_BYTES, "a nonce has 12 bytes");
  const bytes = new Uint8Array(HEAD_BYTES + MAP_BYTES);
  bytes[0] = VERSION;
  bytes[1] = MAP;
  writeU32(bytes, 4, lifetimeSeconds);
  bytes.set(mappedBytes(clientAddress), 8);
  bytes.set(nonce, 24);
  bytes[36] = PROTOCOLS[protocol];
  writeU16(bytes, 40, internalPort);
  writeU16(bytes, 42, lifetimeSeconds === 0 ? 0 : externalPort);
  // The address of no wish is the unspecified one of the family (RFC 6887 11.1).
  bytes.set(mappedBytes(clientAddress.includes(":") ? "::" : "0.0.0.0"), 44);
  return bytes;
}

/** Reads an answer; options behind it are passed over. Throws `DecodeError` where it is none. */
export function decodePcpAnswer(bytes: Uint8Array): PcpAnswer {
  if (bytes.length < 4) throw new DecodeError(FORMAT, bytes.length, "expected at least 4 bytes");
  const version = bytes[0]!;
  if ((bytes[1]! & IS_ANSWER) === 0) throw new DecodeError(FORMAT, 1, "expected an answer, got a question");
  if (version !== VERSION) return { kind: "version", version };
  if (bytes.length < HEAD_BYTES) throw new DecodeError(FORMAT, bytes.length, `expected ${HEAD_BYTES} bytes`);
  if (bytes.length > MAX_BYTES)
    throw new DecodeError(FORMAT, MAX_BYTES, `expected at most ${MAX_BYTES} bytes`);
  const result = bytes[3]!;
  if (result === UNSUPPORTED_VERSION) return { kind: "version", version };
  if ((bytes[1]! & 0x7f) !== MAP) throw new DecodeError(FORMAT, 1, `unknown opcode ${bytes[1]! & 0x7f}`);
  if (bytes.length < HEAD_BYTES + MAP_BYTES)
    throw new DecodeError(FORMAT, bytes.length, `expected ${HEAD_BYTES + MAP_BYTES} bytes`);
  return {
    kind: "map",
    result,
    lifetimeSeconds: readU32(bytes, 4),
    epochSeconds: readU32(bytes, 8),
    nonce: bytes.slice(24, 36),
    protocol: readProtocol(bytes[36]!),
    internalPort: readU16(bytes, 40),
    externalPort: readU16(bytes, 42),
    externalAddress: addressFromBytes(bytes.subarray(44, 60)),
  };
}

/** What a result other than 0 means. */
export function pcpProblem(result: number): string {
  return PROBLEMS[result] ?? `it refuses with number ${result}`;
}

function readProtocol(number: number): MappedProtocol {
  if (number === PROTOCOLS.tcp) return "tcp";
  if (number === PROTOCOLS.udp) return "udp";
  throw new DecodeError(FORMAT, 36, `unknown protocol ${number}`);
}

/** 16 bytes, an IPv4 address in its mapped form (RFC 6887 5). */
function mappedBytes(host: string): Uint8Array {
  const bytes = addressBytes(host);
  assert(bytes !== undefined, "a canonical address");
  return bytes.length === 16 ? bytes : new Uint8Array([...new Uint8Array(10), 0xff, 0xff, ...bytes]);
}
