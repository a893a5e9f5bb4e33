import { addressBytes, addressFromBytes } from "../../base/address.ts";
import { assert } from "../../base/assert.ts";
import { readU16, readU32, writeU16, writeU32 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import type { MappedProtocol, NatPmpMapping } from "./nat-pmp.ts";

/** A mapping to request (RFC 6887 11.1). */
interface PcpMapping extends NatPmpMapping {
  /** 12 bytes that authorize later changes of the mapping. */
  readonly nonce: Uint8Array;
  /** Address of this machine as the router sees it. */
  readonly clientAddress: string;
}

/** A response of a router (RFC 6887 7.2, 11.1). */
export type PcpResponse =
  | {
      readonly kind: "map";
      /** 0 for success; see {@link pcpResultText}. */
      readonly result: number;
      /** Lifetime of the mapping, or of the error. */
      readonly lifetimeSeconds: number;
      readonly epochSeconds: number;
      readonly nonce: Uint8Array;
      readonly protocol: MappedProtocol;
      readonly internalPort: number;
      readonly externalPort: number;
      readonly externalAddress: string;
    }
  /** The router supports another version; version 0 is NAT-PMP (RFC 6887 9, Appendix A). */
  | { readonly kind: "version"; readonly version: number };

const FORMAT = "PCP response";
const VERSION = 2;
const MAP = 1;
const RESPONSE_FLAG = 128;
const UNSUPPORTED_VERSION = 1;
const [HEAD_BYTES, MAP_BYTES] = [24, 36] as const;
/** Maximum length of a message (RFC 6887 7). */
const MAX_BYTES = 1100;
const NONCE_BYTES = 12;
/** IANA protocol numbers. */
const PROTOCOLS = { tcp: 6, udp: 17 } as const;
/** Result codes (RFC 6887 7.4). */
const RESULT_TEXTS = [
  "success",
  "unsupported version",
  "port mapping is not authorized",
  "malformed request",
  "unsupported opcode",
  "unsupported option",
  "malformed option",
  "the router has no connection",
  "the router has no space for more mappings",
  "unsupported protocol",
  "this computer has reached its limit of mappings",
  "the router cannot assign this port",
  "the router sees another address: there is a second router in between",
  "too many remote peers",
] as const;

/** Encodes a request to create a mapping, or to delete it if the lifetime is 0. */
export function encodePcpMapRequest(mapping: PcpMapping): Uint8Array<ArrayBuffer> {
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
  // The unspecified address of the family requests any external address (RFC 6887 11.1).
  bytes.set(mappedBytes(clientAddress.includes(":") ? "::" : "0.0.0.0"), 44);
  return bytes;
}

/** Decodes a response; options are ignored. Throws `DecodeError`. */
export function decodePcpResponse(bytes: Uint8Array): PcpResponse {
  if (bytes.length < 4) throw new DecodeError(FORMAT, bytes.length, "expected at least 4 bytes");
  const version = bytes[0]!;
  if ((bytes[1]! & RESPONSE_FLAG) === 0)
    throw new DecodeError(FORMAT, 1, "expected a response, got a request");
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

/** Describes a result other than 0. */
export function pcpResultText(result: number): string {
  return RESULT_TEXTS[result] ?? `result code ${result}`;
}

function readProtocol(number: number): MappedProtocol {
  if (number === PROTOCOLS.tcp) return "tcp";
  if (number === PROTOCOLS.udp) return "udp";
  throw new DecodeError(FORMAT, 36, `unknown protocol ${number}`);
}

/** Returns the 16 bytes of an address; an IPv4 address in mapped form (RFC 6887 5). */
function mappedBytes(host: string): Uint8Array {
  const bytes = addressBytes(host);
  assert(bytes !== undefined, `expected a canonical address, not ${host}`);
  return bytes.length === 16 ? bytes : new Uint8Array([...new Uint8Array(10), 0xff, 0xff, ...bytes]);
}
