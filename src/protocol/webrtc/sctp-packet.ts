import { readU16, readU32, writeU16, writeU32 } from "../../base/bytes.ts";
import { crc32Of } from "../../base/crc32.ts";
import { DecodeError } from "../../base/errors.ts";

/** Chunk types (RFC 9260 3.2, RFC 6525). */
export const CHUNK = {
  data: 0,
  init: 1,
  initAck: 2,
  sack: 3,
  heartbeat: 4,
  heartbeatAck: 5,
  abort: 6,
  shutdown: 7,
  shutdownAck: 8,
  cookieEcho: 10,
  cookieAck: 11,
  reconfig: 130,
} as const;

/** Flags of a DATA chunk. */
export const DATA_FLAG = { end: 1, begin: 2, unordered: 4 } as const;

/** Bytes of a packet before its chunks, and of a DATA chunk before its data. */
const PACKET_HEADER_BYTES = 12;
export const DATA_HEADER_BYTES = 16;

export interface SctpChunk {
  readonly type: number;
  readonly flags: number;
  /** A view on the packet. */
  readonly value: Uint8Array;
}

/** The fixed part of INIT and INIT ACK (RFC 9260 3.3.2). */
export interface InitChunk {
  readonly tag: number;
  /** Receive window in bytes. */
  readonly windowBytes: number;
  readonly outboundStreams: number;
  readonly inboundStreams: number;
  readonly firstTsn: number;
  /** The state cookie; only in INIT ACK. */
  readonly cookie: Uint8Array | undefined;
}

/** SACK (RFC 9260 3.3.4). Each gap is `[first, last]` relative to the cumulative TSN. */
export interface SackChunk {
  readonly cumulativeTsn: number;
  readonly windowBytes: number;
  readonly gaps: readonly (readonly [first: number, last: number])[];
}

const FORMAT = "SCTP";
/** A packet is one datagram; more chunks are an attempt to keep us busy. */
const MAX_CHUNKS = 64;
const MAX_GAPS = 128;
const PARAMETER_COOKIE = 7;
const PARAMETER_EXTENSIONS = 0x8008;
const MAX_COOKIE_BYTES = 512;
const crc32c = crc32Of(0x82f63b78);

/** Decodes a packet for the verification tag; chunks are views. Throws `DecodeError`. */
export function decodePacket(bytes: Uint8Array): { readonly tag: number; readonly chunks: SctpChunk[] } {
  if (bytes.length < PACKET_HEADER_BYTES + 4) throw new DecodeError(FORMAT, 0, "the packet is too short");
  // DTLS has verified the bytes, so the checksum can only be wrong if the peer is faulty (RFC 8261).
  const chunks: SctpChunk[] = [];
  for (let at = PACKET_HEADER_BYTES; at + 4 <= bytes.length; ) {
    const length = readU16(bytes, at + 2);
    if (length < 4 || at + length > bytes.length || chunks.length >= MAX_CHUNKS)
      throw new DecodeError(FORMAT, at, "a chunk is malformed");
    chunks.push({ type: bytes[at]!, flags: bytes[at + 1]!, value: bytes.subarray(at + 4, at + length) });
    at += length + (-length & 3);
  }
  return { tag: readU32(bytes, 4), chunks };
}

/** Encodes a packet with one chunk. Both ports are `port`. */
export function encodePacket(
  { port, tag }: { readonly port: { readonly local: number; readonly remote: number }; readonly tag: number },
  type: number,
  flags: number,
  value: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const length = 4 + value.length;
  const bytes = new Uint8Array(PACKET_HEADER_BYTES + length + (-length & 3));
  writeU16(bytes, 0, port.local);
  writeU16(bytes, 2, port.remote);
  writeU32(bytes, 4, tag);
  bytes[PACKET_HEADER_BYTES] = type;
  bytes[PACKET_HEADER_BYTES + 1] = flags;
  writeU16(bytes, PACKET_HEADER_BYTES + 2, length);
  bytes.set(value, PACKET_HEADER_BYTES + 4);
  const sum = crc32c(bytes);
  // The checksum is in little-endian order (RFC 9260 appendix A).
  bytes[8] = sum;
  bytes[9] = sum >>> 8;
  bytes[10] = sum >>> 16;
  bytes[11] = sum >>> 24;
  return bytes;
}

/** Encodes the value of INIT or, with a cookie, INIT ACK. */
export function encodeInit(init: InitChunk): Uint8Array {
  const cookie = init.cookie ? 4 + init.cookie.length : 0;
  const value = new Uint8Array(16 + 8 + cookie);
  writeU32(value, 0, init.tag);
  writeU32(value, 4, init.windowBytes);
  writeU16(value, 8, init.outboundStreams);
  writeU16(value, 10, init.inboundStreams);
  writeU32(value, 12, init.firstTsn);
  // Streams are reset by RE-CONFIG when a channel is closed (RFC 8831 6.7).
  writeU16(value, 16, PARAMETER_EXTENSIONS);
  writeU16(value, 18, 5);
  value[20] = CHUNK.reconfig;
  if (init.cookie) {
    writeU16(value, 24, PARAMETER_COOKIE);
    writeU16(value, 26, cookie);
    value.set(init.cookie, 28);
  }
  return value;
}

/** Decodes the value of INIT or INIT ACK. Throws `DecodeError`. */
export function decodeInit(value: Uint8Array): InitChunk {
  if (value.length < 16) throw new DecodeError(FORMAT, 0, "INIT is too short");
  let cookie: Uint8Array | undefined;
  for (let at = 16; at + 4 <= value.length; ) {
    const length = readU16(value, at + 2);
    if (length < 4 || at + length > value.length)
      throw new DecodeError(FORMAT, at, "a parameter is malformed");
    if (readU16(value, at) === PARAMETER_COOKIE) cookie = value.slice(at + 4, at + length);
    at += length + (-length & 3);
  }
  const tag = readU32(value, 0);
  if (tag === 0 || (cookie && cookie.length > MAX_COOKIE_BYTES))
    throw new DecodeError(FORMAT, 0, "INIT is malformed");
  return {
    tag,
    windowBytes: readU32(value, 4),
    outboundStreams: readU16(value, 8),
    inboundStreams: readU16(value, 10),
    firstTsn: readU32(value, 12),
    cookie,
  };
}

/** Encodes the value of a SACK. */
export function encodeSack({ cumulativeTsn, windowBytes, gaps }: SackChunk): Uint8Array {
  const sent = gaps.slice(0, MAX_GAPS);
  const value = new Uint8Array(12 + 4 * sent.length);
  writeU32(value, 0, cumulativeTsn);
  writeU32(value, 4, windowBytes);
  writeU16(value, 8, sent.length);
  for (const [i, [first, last]] of sent.entries()) {
    writeU16(value, 12 + 4 * i, first);
    writeU16(value, 14 + 4 * i, last);
  }
  return value;
}

/** Decodes the value of a SACK; further gaps are dropped. Throws `DecodeError`. */
export function decodeSack(value: Uint8Array): SackChunk {
  if (value.length < 12) throw new DecodeError(FORMAT, 0, "SACK is too short");
  const count = Math.min(readU16(value, 8), MAX_GAPS);
  if (value.length < 12 + 4 * count) throw new DecodeError(FORMAT, 12, "SACK is cut off");
  const gaps = Array.from({ length: count }, (_, i) => {
    const at = 12 + 4 * i;
    return [readU16(value, at), readU16(value, at + 2)] as const;
  });
  return { cumulativeTsn: readU32(value, 0), windowBytes: readU32(value, 4), gaps };
}

/** Returns by how much `a` is after `b`; negative if it is before. TSNs wrap (RFC 9260 1.6). */
export function tsnDistance(a: number, b: number): number {
  return (a - b) | 0;
}

/** Returns the TSN `count` after `tsn`. */
export function tsnAfter(tsn: number, count = 1): number {
  return (tsn + count) >>> 0;
}
