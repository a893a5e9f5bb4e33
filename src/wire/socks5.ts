import { addressBytes, addressFromBytes, canonicalAddress } from "../base/address.ts";
import { concatBytes, latin1Bytes, latin1Text, readU16 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/** A destination for a SOCKS5 proxy: an IP literal, or a name that the proxy resolves. */
export interface SocksAddress {
  readonly host: string;
  readonly port: number;
}

/** The authentication method that the proxy selected (RFC 1928 3). */
type SocksMethod = "none" | "password" | "no_acceptable";

/** The reply to a request (RFC 1928 6). */
interface SocksReply {
  /** 0 for success; see {@link socksErrorText}. */
  readonly code: number;
  /** The address the proxy bound; after an association, the address to which datagrams are sent. */
  readonly bound: SocksAddress;
  /** Length of the reply in bytes. */
  readonly length: number;
}

/** A datagram received through a proxy. `payload` is a view. */
interface SocksDatagram {
  readonly from: SocksAddress;
  readonly payload: Uint8Array;
}

const VERSION = 5;
const PASSWORD_VERSION = 1;
const TYPE_IPV4 = 1;
const TYPE_NAME = 3;
const TYPE_IPV6 = 4;
const COMMANDS = { connect: 1, associate: 3 } as const;
const FORMAT = "SOCKS5 reply";
const DATAGRAM = "SOCKS5 datagram";
/** The length of a name, login or password is one byte (RFC 1928 5, 1929 2). */
const MAX_TEXT_BYTES = 255;

/** Encodes the first message, which offers "no authentication" and, with `hasPassword`, also a password (RFC 1928 3). */
export function encodeSocksGreeting(hasPassword: boolean): Uint8Array<ArrayBuffer> {
  return new Uint8Array(hasPassword ? [VERSION, 2, 0, 2] : [VERSION, 1, 0]);
}

/** Decodes the selected method; undefined while the reply is incomplete. Throws `DecodeError`. */
export function decodeSocksMethod(bytes: Uint8Array): SocksMethod | undefined {
  if (bytes.length > 0 && bytes[0] !== VERSION) throw notSocks(bytes[0]!);
  if (bytes.length < 2) return undefined;
  if (bytes[1] === 0) return "none";
  if (bytes[1] === 2) return "password";
  if (bytes[1] === 0xff) return "no_acceptable";
  throw new DecodeError(FORMAT, 1, `expected an offered method, got ${bytes[1]}`);
}

/** Encodes login and password, both UTF-8 (RFC 1929 2). Throws `RangeError` if one has more than 255 bytes. */
export function encodeSocksPassword(login: Uint8Array, password: Uint8Array): Uint8Array<ArrayBuffer> {
  return concatBytes([new Uint8Array([PASSWORD_VERSION]), lengthPrefixed(login), lengthPrefixed(password)]);
}

/** Returns true if the proxy accepted the password; undefined while the reply is incomplete. Throws `DecodeError`. */
export function decodeSocksPasswordReply(bytes: Uint8Array): boolean | undefined {
  // The version is 1 (RFC 1929 2), but some proxies send the SOCKS version.
  if (bytes.length > 0 && bytes[0] !== PASSWORD_VERSION && bytes[0] !== VERSION)
    throw new DecodeError(FORMAT, 0, `expected the reply to a password, got ${bytes[0]}`);
  return bytes.length < 2 ? undefined : bytes[1] === 0;
}

/** Encodes a request for a connection, or for an association for datagrams (RFC 1928 4). */
export function encodeSocksRequest(
  command: keyof typeof COMMANDS,
  to: SocksAddress,
): Uint8Array<ArrayBuffer> {
  return concatBytes([new Uint8Array([VERSION, COMMANDS[command], 0]), encodeAddress(to)]);
}

/** Decodes the reply to a request; undefined while it is incomplete. Throws `DecodeError`. */
export function decodeSocksReply(bytes: Uint8Array): SocksReply | undefined {
  if (bytes.length > 0 && bytes[0] !== VERSION) throw notSocks(bytes[0]!);
  if (bytes.length < 4) return undefined;
  const code = bytes[1]!;
  const decoded = decodeAddress(bytes, 3, FORMAT);
  if (decoded === undefined) return undefined;
  return { code, bound: decoded.address, length: decoded.end };
}

/** Wraps a datagram for the proxy, unfragmented (RFC 1928 7). */
export function encodeSocksDatagram(to: SocksAddress, payload: Uint8Array): Uint8Array<ArrayBuffer> {
  return concatBytes([new Uint8Array(3), encodeAddress(to), payload]);
}

/** Decodes a datagram from the proxy. Throws `DecodeError`, also for a fragment: reassembly is not supported. */
export function decodeSocksDatagram(bytes: Uint8Array): SocksDatagram {
  if (bytes.length < 4) throw new DecodeError(DATAGRAM, bytes.length, "truncated header");
  if (bytes[2] !== 0) throw new DecodeError(DATAGRAM, 2, `fragment ${bytes[2]}; fragments are not supported`);
  const decoded = decodeAddress(bytes, 3, DATAGRAM);
  if (decoded === undefined) throw new DecodeError(DATAGRAM, bytes.length, "truncated address");
  return { from: decoded.address, payload: bytes.subarray(decoded.end) };
}

/** Describes a reply code other than 0. */
export function socksErrorText(code: number): string {
  return REPLY_TEXTS[code] ?? `reply code ${code}`;
}

/** Reply codes (RFC 1928 6). */
const REPLY_TEXTS: Readonly<Record<number, string>> = {
  1: "general failure",
  2: "not allowed by its rules",
  3: "network unreachable",
  4: "host unreachable",
  5: "connection refused",
  6: "timed out",
  7: "command not supported",
  8: "address type not supported",
};

/** Reply code of a proxy that does not support the command, for any client (RFC 1928 6). */
export const SOCKS_COMMAND_NOT_SUPPORTED = 7;

function encodeAddress({ host, port }: SocksAddress): Uint8Array<ArrayBuffer> {
  const literal = canonicalAddress(host);
  const bytes = literal === undefined ? lengthPrefixed(latin1Bytes(host)) : addressBytes(literal)!;
  const type = literal === undefined ? TYPE_NAME : bytes.length === 4 ? TYPE_IPV4 : TYPE_IPV6;
  return concatBytes([new Uint8Array([type]), bytes, new Uint8Array([port >> 8, port & 0xff])]);
}

function decodeAddress(
  bytes: Uint8Array,
  at: number,
  format: string,
): { readonly address: SocksAddress; readonly end: number } | undefined {
  const type = bytes[at];
  if (type !== TYPE_IPV4 && type !== TYPE_IPV6 && type !== TYPE_NAME)
    throw new DecodeError(format, at, `expected an address type, got ${type}`);
  const isName = type === TYPE_NAME;
  const start = at + (isName ? 2 : 1);
  if (bytes.length < start) return undefined;
  const length = isName ? bytes[at + 1]! : type === TYPE_IPV4 ? 4 : 16;
  const end = start + length + 2;
  if (bytes.length < end) return undefined;
  const host = bytes.subarray(start, start + length);
  const text = isName ? latin1Text(host) : addressFromBytes(host);
  // Some proxies send an IP address as a name.
  return { address: { host: canonicalAddress(text) ?? text, port: readU16(bytes, end - 2) }, end };
}

function lengthPrefixed(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  if (bytes.length > MAX_TEXT_BYTES)
    throw new RangeError(`expected at most ${MAX_TEXT_BYTES} bytes, got ${bytes.length}`);
  return concatBytes([new Uint8Array([bytes.length]), bytes]);
}

function notSocks(first: number): DecodeError {
  const isHttp = first === 0x48; // "H" of "HTTP/1.1 400".
  const hint = isHttp ? " (this is an HTTP proxy)" : "";
  return new DecodeError(FORMAT, 0, `expected version ${VERSION}, got ${first}${hint}`);
}
