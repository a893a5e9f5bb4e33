import { readU32 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import { readTunerFrame, readTunerValues, tunerFrame, tunerU32, tunerValue } from "./frame.ts";

const DISCOVER_REQUEST = 2;
const DISCOVER_REPLY = 3;
const TAG_DEVICE_TYPE = 0x01;
const TAG_DEVICE_ID = 0x02;
const TAG_TUNER_COUNT = 0x10;
const TAG_LINEUP_URL = 0x27;
const TAG_BASE_URL = 0x2a;
/** Clients that look for several kinds of devices list their types. */
const TAG_MULTI_TYPE = 0x2d;
const DEVICE_TYPE_TUNER = 1;
/** Matches every type or id. */
const WILDCARD = 0xffffffff;
const FORMAT = "tuner discovery";

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
  const frame = readTunerFrame(bytes);
  if (frame?.length !== bytes.length) throw new DecodeError(FORMAT, 2, "the length is wrong");
  if (frame.type !== DISCOVER_REQUEST) throw new DecodeError(FORMAT, 0, "not a discovery request");
  for (const { tag, value } of readTunerValues(frame.payload)) {
    if (tag === TAG_MULTI_TYPE && value.length % 4 === 0 && !namesTuners(value)) return false;
    if (value.length !== 4) continue;
    const number = readU32(value, 0);
    if (tag === TAG_DEVICE_TYPE && number !== DEVICE_TYPE_TUNER && number !== WILDCARD) return false;
    if (tag === TAG_DEVICE_ID && number !== Number.parseInt(id, 16) && number !== WILDCARD) return false;
  }
  return true;
}

/** Whether a list of device types contains tuners. */
function namesTuners(types: Uint8Array): boolean {
  for (let at = 0; at < types.length; at += 4)
    if ([DEVICE_TYPE_TUNER, WILDCARD].includes(readU32(types, at))) return true;
  return false;
}

/** Writes the reply to a discovery request. */
export function tunerReply({ id, tunerCount, baseUrl }: TunerFacts): Uint8Array<ArrayBuffer> {
  return tunerFrame(DISCOVER_REPLY, [
    tunerValue(TAG_DEVICE_TYPE, tunerU32(DEVICE_TYPE_TUNER)),
    tunerValue(TAG_DEVICE_ID, tunerU32(Number.parseInt(id, 16))),
    tunerValue(TAG_TUNER_COUNT, Uint8Array.of(tunerCount)),
    tunerValue(TAG_BASE_URL, encodeUtf8(baseUrl)),
    tunerValue(TAG_LINEUP_URL, encodeUtf8(`${baseUrl}/lineup.json`)),
  ]);
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
