import { concatBytes, readU32, writeU32 } from "../base/bytes.ts";
import { crc32Of } from "../base/crc32.ts";
import { DecodeError } from "../base/errors.ts";
import { encodeUtf8 } from "../base/utf8.ts";

/** UDP port on which clients look for tuners (libhdhomerun, hdhomerun_pkt.h). */
export const TUNER_DISCOVERY_PORT = 65001;

const DISCOVER_REQUEST = 2;
const DISCOVER_REPLY = 3;
const TAG_DEVICE_TYPE = 0x01;
const TAG_DEVICE_ID = 0x02;
const TAG_TUNER_COUNT = 0x10;
const TAG_LINEUP_URL = 0x27;
const TAG_BASE_URL = 0x2a;
const DEVICE_TYPE_TUNER = 1;
/** Matches every type or id. */
const WILDCARD = 0xffffffff;
/** Type and length before the payload, the checksum after it. */
const HEAD_BYTES = 4;
const CHECKSUM_BYTES = 4;
/** Values up to this size have a length of one byte. */
const MAX_SHORT_LENGTH = 0x7f;
const FORMAT = "tuner discovery";

const crc32 = crc32Of(0xedb88320);

/** What this engine tells about itself as a tuner. */
export interface TunerFacts {
  /** 8 hexadecimal digits, see {@link tunerIdOf}. */
  readonly id: string;
  /** 1 to 255. */
  readonly tunerCount: number;
  /** `http://host:port`, without a final slash. */
  readonly baseUrl: string;
}

/**
 * Reads a discovery request. Returns true if it asks for a tuner with this id, or for any; false if it asks for another device. Throws
 * `DecodeError` for anything that is not a request.
 */
export function isTunerRequest(bytes: Uint8Array, id: string): boolean {
  if (bytes.length < HEAD_BYTES + CHECKSUM_BYTES) throw new DecodeError(FORMAT, bytes.length, "too short");
  const payloadEnd = HEAD_BYTES + ((bytes[2]! << 8) | bytes[3]!);
  if (payloadEnd + CHECKSUM_BYTES !== bytes.length) throw new DecodeError(FORMAT, 2, "the length is wrong");
  // The checksum is little-endian; everything else is big-endian.
  const sent = readU32(bytes.slice(payloadEnd).reverse(), 0);
  if (crc32(bytes.subarray(0, payloadEnd)) !== sent)
    throw new DecodeError(FORMAT, payloadEnd, "the checksum is wrong");
  if (((bytes[0]! << 8) | bytes[1]!) !== DISCOVER_REQUEST)
    throw new DecodeError(FORMAT, 0, "not a discovery request");
  for (let at = HEAD_BYTES; at < payloadEnd; ) {
    const tag = bytes[at]!;
    const length = bytes[at + 1] ?? MAX_SHORT_LENGTH + 1;
    const value = at + 2;
    if (length > MAX_SHORT_LENGTH || value + length > payloadEnd)
      throw new DecodeError(FORMAT, at, "a value is too long");
    at = value + length;
    if (length !== 4) continue;
    const number = readU32(bytes, value);
    if (tag === TAG_DEVICE_TYPE && number !== DEVICE_TYPE_TUNER && number !== WILDCARD) return false;
    if (tag === TAG_DEVICE_ID && number !== Number.parseInt(id, 16) && number !== WILDCARD) return false;
  }
  return true;
}

/** Writes the reply to a discovery request. */
export function tunerReply({ id, tunerCount, baseUrl }: TunerFacts): Uint8Array<ArrayBuffer> {
  const payload = concatBytes([
    value(TAG_DEVICE_TYPE, u32(DEVICE_TYPE_TUNER)),
    value(TAG_DEVICE_ID, u32(Number.parseInt(id, 16))),
    value(TAG_TUNER_COUNT, Uint8Array.of(tunerCount)),
    value(TAG_BASE_URL, encodeUtf8(baseUrl)),
    value(TAG_LINEUP_URL, encodeUtf8(`${baseUrl}/lineup.json`)),
  ]);
  const head = Uint8Array.of(0, DISCOVER_REPLY, payload.length >> 8, payload.length & 0xff);
  const frame = concatBytes([head, payload]);
  return concatBytes([frame, u32(crc32(frame)).reverse()]);
}

function value(tag: number, bytes: Uint8Array): Uint8Array {
  return concatBytes([Uint8Array.of(tag, bytes.length), bytes]);
}

function u32(number: number): Uint8Array {
  const bytes = new Uint8Array(4);
  writeU32(bytes, 0, number);
  return bytes;
}

/** Each digit of an id is looked up or taken as it is; the exclusive or of all must be 0 (libhdhomerun, validate_device_id). */
const ID_TABLE = [0xa, 0x5, 0xf, 0x6, 0x7, 0xc, 0x1, 0xb, 0x9, 0x2, 0x8, 0xd, 0x4, 0x3, 0xe, 0x0];

/** Returns the tuner id of an installation: 7 digits of its id, and one that makes the checksum valid. */
export function tunerIdOf(deviceId: string): string {
  // Ids that begin with 1 belong to real devices of this kind; clients do not check it.
  const digits = `1${deviceId.slice(0, 6)}`;
  const sum = [...digits].reduce((all, digit, i) => {
    const number = Number.parseInt(digit, 16);
    return all ^ (i % 2 === 0 ? ID_TABLE[number]! : number);
  }, 0);
  return `${digits}${sum.toString(16)}`.toUpperCase();
}
