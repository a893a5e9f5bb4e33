import { addressBytes, addressFromBytes, canonicalAddress } from "../base/address.ts";
import { concatBytes, latin1Bytes, latin1Text, readU16 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/** Where a SOCKS5 proxy is asked to go: an IP literal, or a name that it looks up itself. */
export interface SocksPlace {
  readonly host: string;
  readonly port: number;
}

/** How a proxy wants us to say who we are (RFC 1928 3). */
export type SocksMethod = "none" | "password" | "no_acceptable";

/** What a proxy answered to a request (RFC 1928 6). */
export interface SocksReply {
  /** 0: it is done. */
  readonly code: number;
  /** What the proxy opened for us: after an association, where datagrams go to. */
  readonly bound: SocksPlace;
  /** How many bytes the answer took. */
  readonly length: number;
}

/** A datagram that came by way of a proxy. `payload` is a view. */
export interface SocksDatagram {
  readonly from: SocksPlace;
  readonly payload: Uint8Array;
}

const VERSION = 5;
const PASSWORD_VERSION = 1;
const TYPE_IPV4 = 1;
const TYPE_NAME = 3;
const TYPE_IPV6 = 4;
const COMMANDS = { connect: 1, associate: 3 } as const;
const FORMAT = "SOCKS5 answer";
const DATAGRAM = "SOCKS5 datagram";
/** A name, a login and a password have one byte for their length (RFC 1928 5, 1929 2). */
const MAX_TEXT_BYTES = 255;

/** The first bytes to a proxy: which methods we know. With a password, being asked for none is fine as well. */
export function encodeSocksGreeting(hasPassword: boolean): Uint8Array<ArrayBuffer> {
  return new Uint8Array(hasPassword ? [VERSION, 2, 0, 2] : [VERSION, 1, 0]);
}

/** Which method the proxy chose; undefined while its two bytes are not there. Throws `DecodeError` for what is no answer. */
export function decodeSocksMethod(bytes: Uint8Array): SocksMethod | undefined {
  if (bytes.length > 0 && bytes[0] !== VERSION) throw notSocks(bytes[0]!);
  if (bytes.length < 2) return undefined;
  if (bytes[1] === 0) return "none";
  if (bytes[1] === 2) return "password";
  if (bytes[1] === 0xff) return "no_acceptable";
  throw new DecodeError(FORMAT, 1, `expected a method that was offered, got ${bytes[1]}`);
}

/** Login and password (RFC 1929 2), as UTF-8. Throws `RangeError` where one has more than 255 bytes. */
export function encodeSocksPassword(login: Uint8Array, password: Uint8Array): Uint8Array<ArrayBuffer> {
  return concatBytes([new Uint8Array([PASSWORD_VERSION]), counted(login), counted(password)]);
}

/** Whether the proxy took the password; undefined while its two bytes are not there. */
export function decodeSocksVerdict(bytes: Uint8Array): boolean | undefined {
  // RFC 1929 says 1; some proxies repeat the version of SOCKS.
  if (bytes.length > 0 && bytes[0] !== PASSWORD_VERSION && bytes[0] !== VERSION)
    throw new DecodeError(FORMAT, 0, `expected the verdict on a password, got ${bytes[0]}`);
  return bytes.length < 2 ? undefined : bytes[1] === 0;
}

/** Asks for a connection, or for an association for datagrams (RFC 1928 4). */
export function encodeSocksRequest(command: keyof typeof COMMANDS, to: SocksPlace): Uint8Array<ArrayBuffer> {
  return concatBytes([new Uint8Array([VERSION, COMMANDS[command], 0]), encodePlace(to)]);
}

/** Reads the answer to a request; undefined while it is not all there. Throws `DecodeError` where it is none. */
export function decodeSocksReply(bytes: Uint8Array): SocksReply | undefined {
  if (bytes.length > 0 && bytes[0] !== VERSION) throw notSocks(bytes[0]!);
  if (bytes.length < 4) return undefined;
  const code = bytes[1]!;
  const place = decodePlace(bytes, 3, FORMAT);
  if (place === undefined) return undefined;
  return { code, bound: place.at, length: place.end };
}

/** A datagram as the proxy takes it (RFC 1928 7), never in fragments. */
export function encodeSocksDatagram(to: SocksPlace, payload: Uint8Array): Uint8Array<ArrayBuffer> {
  return concatBytes([new Uint8Array(3), encodePlace(to), payload]);
}

/** Reads a datagram as the proxy hands it on. Throws `DecodeError` for fragments too, which nobody sends. */
export function decodeSocksDatagram(bytes: Uint8Array): SocksDatagram {
  if (bytes.length < 4) throw new DecodeError(DATAGRAM, bytes.length, "a head that is cut off");
  if (bytes[2] !== 0)
    throw new DecodeError(DATAGRAM, 2, `a fragment (${bytes[2]}), which is not put together`);
  const place = decodePlace(bytes, 3, DATAGRAM);
  if (place === undefined) throw new DecodeError(DATAGRAM, bytes.length, "an address that is cut off");
  return { from: place.at, payload: bytes.subarray(place.end) };
}

/** What a code means that is not 0, in words. */
export function socksRefusal(code: number): string {
  return REFUSALS[code] ?? `it refused with code ${code}`;
}

const REFUSALS: Readonly<Record<number, string>> = {
  1: "it failed",
  2: "its rules do not allow it",
  3: "the network cannot be reached from it",
  4: "the host cannot be reached from it",
  5: "the connection was refused",
  6: "it took too long",
  7: "it does not know the command",
  8: "it does not know addresses of this kind",
};

/** The code that says that the proxy cannot do what was asked, whoever asks it (RFC 1928 6). */
export const SOCKS_NO_SUCH_COMMAND = 7;

function encodePlace({ host, port }: SocksPlace): Uint8Array<ArrayBuffer> {
  const literal = canonicalAddress(host);
  const bytes = literal === undefined ? counted(latin1Bytes(host)) : addressBytes(literal)!;
  const type = literal === undefined ? TYPE_NAME : bytes.length === 4 ? TYPE_IPV4 : TYPE_IPV6;
  return concatBytes([new Uint8Array([type]), bytes, new Uint8Array([port >> 8, port & 0xff])]);
}

function decodePlace(
  bytes: Uint8Array,
  at: number,
  format: string,
): { readonly at: SocksPlace; readonly end: number } | undefined {
  const type = bytes[at];
  if (type !== TYPE_IPV4 && type !== TYPE_IPV6 && type !== TYPE_NAME)
    throw new DecodeError(format, at, `expected a kind of address, got ${type}`);
  const isName = type === TYPE_NAME;
  const start = at + (isName ? 2 : 1);
  if (bytes.length < start) return undefined;
  const length = isName ? bytes[at + 1]! : type === TYPE_IPV4 ? 4 : 16;
  const end = start + length + 2;
  if (bytes.length < end) return undefined;
  const host = bytes.subarray(start, start + length);
  const text = isName ? latin1Text(host) : addressFromBytes(host);
  // Some write an address as a name.
  return { at: { host: canonicalAddress(text) ?? text, port: readU16(bytes, end - 2) }, end };
}

function counted(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  if (bytes.length > MAX_TEXT_BYTES)
    throw new RangeError(`expected at most ${MAX_TEXT_BYTES} bytes, got ${bytes.length}`);
  return concatBytes([new Uint8Array([bytes.length]), bytes]);
}

function notSocks(first: number): DecodeError {
  const isHttp = first === 0x48; // "H" of "HTTP/1.1 400".
  const hint = isHttp ? " (it answers as an HTTP proxy does)" : "";
  return new DecodeError(FORMAT, 0, `expected version ${VERSION}, got ${first}${hint}`);
}
