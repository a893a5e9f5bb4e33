import { addressFromBytes } from "../base/address.ts";
import { readU16, readU32, writeU16, writeU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/** Where a router takes questions of NAT-PMP and PCP (RFC 6886 3.1, RFC 6887 19.1). */
export const ROUTER_PORT = 5351;

/** What a port is mapped for. */
export type MappedProtocol = "tcp" | "udp";

/** What a router answers (RFC 6886 3.2, 3.3, 3.5). */
export type NatPmpAnswer = {
  /** 0: done. See {@link natPmpProblem}. */
  readonly result: number;
  /** Seconds since the router forgot all mappings. */
  readonly epochSeconds: number;
} & (
  | { readonly kind: "address"; readonly address: string }
  | {
      readonly kind: "map";
      readonly protocol: MappedProtocol;
      readonly internalPort: number;
      /** 0 where nothing was mapped. */
      readonly externalPort: number;
      readonly lifetimeSeconds: number;
    }
);

/** What is asked for. */
export interface NatPmpMapping {
  readonly protocol: MappedProtocol;
  readonly internalPort: number;
  /** The wish; the router may give another. */
  readonly externalPort: number;
  /** 0 ends the mapping. */
  readonly lifetimeSeconds: number;
}

const FORMAT = "NAT-PMP answer";
const VERSION = 0;
const OPCODES = { address: 0, udp: 1, tcp: 2 } as const;
/** Answers have the opcode of their question, and this. */
const IS_ANSWER = 128;
const [ADDRESS_BYTES, MAP_BYTES] = [12, 16] as const;
/** RFC 6886 3.5. */
const PROBLEMS = [
  "done",
  "it does not speak this version",
  "it is set not to do so",
  "it has no connection itself",
  "it has no room for more mappings",
  "it does not know that question",
] as const;

/** Asks for the router's address out there. */
export function encodeNatPmpAddressQuestion(): Uint8Array<ArrayBuffer> {
  return new Uint8Array([VERSION, OPCODES.address]);
}

/** Asks for a port to be mapped to ours (RFC 6886 3.3), or not any more (3.4). */
export function encodeNatPmpMapQuestion(mapping: NatPmpMapping): Uint8Array<ArrayBuffer> {
  const { protocol, internalPort, externalPort, lifetimeSeconds } = mapping;
  const bytes = new Uint8Array(12);
  bytes[0] = VERSION;
  bytes[1] = OPCODES[protocol];
  writeU16(bytes, 4, internalPort);
  writeU16(bytes, 6, lifetimeSeconds === 0 ? 0 : externalPort);
  writeU32(bytes, 8, lifetimeSeconds);
  return bytes;
}

/** Reads an answer. Throws `DecodeError` where it is none. */
export function decodeNatPmpAnswer(bytes: Uint8Array): NatPmpAnswer {
  if (bytes.length < 8) throw new DecodeError(FORMAT, bytes.length, "expected at least 8 bytes");
  if (bytes[0] !== VERSION) throw new DecodeError(FORMAT, 0, `expected version 0, got ${bytes[0]}`);
  const opcode = bytes[1]! - IS_ANSWER;
  const [result, epochSeconds] = [readU16(bytes, 2), readU32(bytes, 4)];
  if (opcode === OPCODES.address) {
    // What failed need not have the rest (RFC 6886 3.5).
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

/** What a result other than 0 means. */
export function natPmpProblem(result: number): string {
  return PROBLEMS[result] ?? `it refuses with number ${result}`;
}

function expectBytes(bytes: Uint8Array, length: number): void {
  if (bytes.length < length) throw new DecodeError(FORMAT, bytes.length, `expected ${length} bytes`);
}
