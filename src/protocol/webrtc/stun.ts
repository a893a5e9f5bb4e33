import { addressBytes, addressFromBytes, type PeerAddress } from "../../base/address.ts";
import {
  concatBytes,
  equalBytes,
  latin1Bytes,
  latin1Text,
  readU16,
  readU32,
  writeU16,
  writeU32,
} from "../../base/bytes.ts";
import { crc32Of } from "../../base/crc32.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Sha1 } from "../../base/ids.ts";

/** A binding message of STUN (RFC 8489) with the attributes of ICE (RFC 8445). Other attributes are skipped. */
export interface StunMessage {
  readonly kind: "request" | "indication" | "success" | "error";
  /** 12 bytes. */
  readonly transaction: Uint8Array;
  /** `receiver:sender` fragments; Latin-1. */
  readonly username?: string;
  readonly priority?: number;
  /** The sender selects this pair (USE-CANDIDATE). */
  readonly isNominated?: boolean;
  /** The role of the sender with its 8-byte tie-breaker. */
  readonly role?: { readonly isControlling: boolean; readonly tieBreaker: Uint8Array };
  /** The source of the request, as the responder saw it. */
  readonly mapped?: PeerAddress;
  readonly errorCode?: number;
}

const STUN_HEADER_BYTES = 20;
const COOKIE = 0x2112a442;
const COOKIE_BYTES = new Uint8Array([0x21, 0x12, 0xa4, 0x42]);
const FORMAT = "STUN message";
const KINDS = { request: 0x001, indication: 0x011, success: 0x101, error: 0x111 } as const;
const ATTRIBUTE = {
  username: 0x0006,
  integrity: 0x0008,
  error: 0x0009,
  mapped: 0x0020,
  priority: 0x0024,
  useCandidate: 0x0025,
  fingerprint: 0x8028,
  controlled: 0x8029,
  controlling: 0x802a,
} as const;
const INTEGRITY_BYTES = 20;
const FINGERPRINT_XOR = 0x5354554e;
/** Two fragments of at most 256 characters (RFC 8839 5.4). */
const MAX_USERNAME_BYTES = 513;
const HMAC_BLOCK_BYTES = 64;
const crc32 = crc32Of(0xedb88320);

/** Returns true if a datagram is a STUN message: two zero bits, a matching length and the magic cookie (RFC 7983). */
export function isStun(bytes: Uint8Array): boolean {
  return (
    bytes.length >= STUN_HEADER_BYTES &&
    bytes[0]! < 4 &&
    readU32(bytes, 4) === COOKIE &&
    readU16(bytes, 2) === bytes.length - STUN_HEADER_BYTES
  );
}

/**
 * Decodes a binding message. `key` returns the password that protects the message, or undefined if the message is not expected; a
 * message without a valid MESSAGE-INTEGRITY of that password is an error. Throws `DecodeError`.
 */
export function decodeStun(
  bytes: Uint8Array,
  key: (message: StunMessage) => string | undefined,
  sha1: Sha1,
): StunMessage {
  const { message, integrityAt } = readStun(bytes);
  const password = key(message);
  if (password === undefined || integrityAt === undefined) throw new DecodeError(FORMAT, 0, "unexpected");
  const expected = integrityOf(bytes.subarray(0, integrityAt), password, sha1);
  if (!equalBytes(expected, bytes.subarray(integrityAt + 4, integrityAt + 4 + INTEGRITY_BYTES)))
    throw new DecodeError(FORMAT, integrityAt, "the message integrity is wrong");
  return message;
}

/** Decodes a message without verifying its integrity: responses of STUN servers have none. Throws `DecodeError`. */
export function peekStun(bytes: Uint8Array): StunMessage {
  return readStun(bytes).message;
}

/** Encodes a message; with `password`, it gets MESSAGE-INTEGRITY. */
export function encodeStun(
  message: StunMessage,
  password: string | undefined,
  sha1: Sha1,
): Uint8Array<ArrayBuffer> {
  const { username, priority, role, mapped, errorCode } = message;
  const attributes: Uint8Array[] = [];
  if (username !== undefined) attributes.push(attribute(ATTRIBUTE.username, latin1Bytes(username)));
  if (priority !== undefined) attributes.push(attribute(ATTRIBUTE.priority, u32(priority)));
  if (role)
    attributes.push(
      attribute(role.isControlling ? ATTRIBUTE.controlling : ATTRIBUTE.controlled, role.tieBreaker),
    );
  if (message.isNominated) attributes.push(attribute(ATTRIBUTE.useCandidate, new Uint8Array(0)));
  if (mapped) attributes.push(attribute(ATTRIBUTE.mapped, mappedValue(mapped, message.transaction)));
  if (errorCode !== undefined)
    attributes.push(
      attribute(ATTRIBUTE.error, new Uint8Array([0, 0, Math.floor(errorCode / 100), errorCode % 100])),
    );
  const header = new Uint8Array(STUN_HEADER_BYTES);
  writeU16(header, 0, KINDS[message.kind]);
  header.set(COOKIE_BYTES, 4);
  header.set(message.transaction, 8);
  let bytes = concatBytes([header, ...attributes]);
  writeU16(bytes, 2, bytes.length - STUN_HEADER_BYTES);
  if (password !== undefined)
    bytes = concatBytes([bytes, attribute(ATTRIBUTE.integrity, integrityOf(bytes, password, sha1))]);
  // The length that is covered includes the fingerprint itself (RFC 8489 14.7).
  writeU16(bytes, 2, bytes.length - STUN_HEADER_BYTES + 8);
  return concatBytes([bytes, attribute(ATTRIBUTE.fingerprint, u32((crc32(bytes) ^ FINGERPRINT_XOR) >>> 0))]);
}

interface RawStun {
  readonly message: StunMessage;
  /** Offset of MESSAGE-INTEGRITY; attributes after it are ignored. */
  readonly integrityAt: number | undefined;
}

function readStun(bytes: Uint8Array): RawStun {
  if (!isStun(bytes)) throw new DecodeError(FORMAT, 0, "not a STUN message");
  const type = readU16(bytes, 0);
  const kind = (Object.keys(KINDS) as (keyof typeof KINDS)[]).find((each) => KINDS[each] === type);
  if (!kind) throw new DecodeError(FORMAT, 0, "not a binding message");
  const transaction = bytes.slice(8, STUN_HEADER_BYTES);
  const found: { -readonly [K in keyof StunMessage]: StunMessage[K] } = { kind, transaction };
  for (let at = STUN_HEADER_BYTES; at < bytes.length; ) {
    if (at + 4 > bytes.length) throw new DecodeError(FORMAT, at, "an attribute is cut off");
    const [name, length] = [readU16(bytes, at), readU16(bytes, at + 2)];
    const value = bytes.subarray(at + 4, at + 4 + length);
    if (value.length < length) throw new DecodeError(FORMAT, at, "an attribute is cut off");
    if (name === ATTRIBUTE.integrity) {
      if (length !== INTEGRITY_BYTES) throw new DecodeError(FORMAT, at, "the message integrity is malformed");
      return { message: found, integrityAt: at };
    }
    readAttribute(found, name, value, at);
    at += 4 + length + (-length & 3);
  }
  return { message: found, integrityAt: undefined };
}

function readAttribute(
  found: { -readonly [K in keyof StunMessage]: StunMessage[K] },
  name: number,
  value: Uint8Array,
  at: number,
): void {
  const expectBytes = (length: number) => {
    if (value.length !== length) throw new DecodeError(FORMAT, at, "an attribute has a wrong length");
  };
  switch (name) {
    case ATTRIBUTE.username:
      if (value.length > MAX_USERNAME_BYTES) throw new DecodeError(FORMAT, at, "the username is too long");
      found.username = latin1Text(value);
      break;
    case ATTRIBUTE.priority:
      expectBytes(4);
      found.priority = readU32(value, 0);
      break;
    case ATTRIBUTE.useCandidate:
      found.isNominated = true;
      break;
    case ATTRIBUTE.controlled:
    case ATTRIBUTE.controlling:
      expectBytes(8);
      found.role = { isControlling: name === ATTRIBUTE.controlling, tieBreaker: value.slice() };
      break;
    case ATTRIBUTE.mapped:
      found.mapped = readMapped(value, found.transaction, at);
      break;
    case ATTRIBUTE.error:
      if (value.length < 4) throw new DecodeError(FORMAT, at, "the error code is malformed");
      found.errorCode = (value[2]! & 7) * 100 + value[3]!;
      break;
  }
}

/** MESSAGE-INTEGRITY of `bytes`, with a header length that includes the attribute itself (RFC 8489 14.5). */
function integrityOf(bytes: Uint8Array, password: string, sha1: Sha1): Uint8Array {
  const covered = bytes.slice();
  writeU16(covered, 2, bytes.length - STUN_HEADER_BYTES + 4 + INTEGRITY_BYTES);
  return hmacSha1(latin1Bytes(password), covered, sha1);
}

/** HMAC-SHA1 (RFC 2104). */
function hmacSha1(key: Uint8Array, bytes: Uint8Array, sha1: Sha1): Uint8Array {
  const block = new Uint8Array(HMAC_BLOCK_BYTES);
  block.set(key.length > HMAC_BLOCK_BYTES ? sha1(key) : key);
  const inner = sha1(concatBytes([block.map((byte) => byte ^ 0x36), bytes]));
  return sha1(concatBytes([block.map((byte) => byte ^ 0x5c), inner]));
}

function attribute(name: number, value: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(4 + value.length + (-value.length & 3));
  writeU16(bytes, 0, name);
  writeU16(bytes, 2, value.length);
  bytes.set(value, 4);
  return bytes;
}

function u32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  writeU32(bytes, 0, value);
  return bytes;
}

/** XOR-MAPPED-ADDRESS (RFC 8489 14.2). */
function mappedValue({ host, port }: PeerAddress, transaction: Uint8Array): Uint8Array {
  const address = addressBytes(host) ?? new Uint8Array(4);
  const bytes = new Uint8Array(4 + address.length);
  bytes[1] = address.length === 4 ? 1 : 2;
  writeU16(bytes, 2, port ^ (COOKIE >>> 16));
  const mask = concatBytes([COOKIE_BYTES, transaction]);
  for (let i = 0; i < address.length; i++) bytes[4 + i] = address[i]! ^ mask[i]!;
  return bytes;
}

function readMapped(value: Uint8Array, transaction: Uint8Array, at: number): PeerAddress {
  const length = value[1] === 1 ? 4 : 16;
  if (value.length !== 4 + length || value[1]! > 2)
    throw new DecodeError(FORMAT, at, "the mapped address is malformed");
  const mask = concatBytes([COOKIE_BYTES, transaction]);
  const address = value.slice(4).map((byte, i) => byte ^ mask[i]!);
  return { host: addressFromBytes(address), port: readU16(value, 2) ^ (COOKIE >>> 16) };
}
