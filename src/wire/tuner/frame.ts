import { concatBytes, readU16, readU32, writeU16, writeU32 } from "../../base/bytes.ts";
import { crc32Of } from "../../base/crc32.ts";
import { DecodeError } from "../../base/errors.ts";

/** The port of network tuners: UDP for discovery, TCP for control (libhdhomerun, hdhomerun_pkt.h). */
export const TUNER_PORT = 65001;
/** Type and length before the payload, the checksum after it. */
const HEAD_BYTES = 4;
const CHECKSUM_BYTES = 4;
/** The largest payload that clients accept (HDHOMERUN_MAX_PAYLOAD_SIZE). */
export const MAX_TUNER_PAYLOAD = 1_452;
const MAX_FRAME_BYTES = HEAD_BYTES + MAX_TUNER_PAYLOAD + CHECKSUM_BYTES;
const FORMAT = "tuner frame";

const crc32 = crc32Of(0xedb88320);

/** A frame of the tuner protocols. */
export interface TunerFrame {
  readonly type: number;
  /** A view on the bytes that were read. */
  readonly payload: Uint8Array;
  /** Bytes of the whole frame. */
  readonly length: number;
}

/** Reads the frame at the start of `bytes`; undefined if it is not complete. Throws `DecodeError`. */
export function readTunerFrame(bytes: Uint8Array): TunerFrame | undefined {
  if (bytes.length < HEAD_BYTES) return undefined;
  const end = HEAD_BYTES + readU16(bytes, 2);
  const length = end + CHECKSUM_BYTES;
  if (length > MAX_FRAME_BYTES) throw new DecodeError(FORMAT, 2, "the frame is too long");
  if (bytes.length < length) return undefined;
  // The checksum is little-endian; everything else is big-endian.
  const sent = readU32(bytes.slice(end, length).reverse(), 0);
  if (crc32(bytes.subarray(0, end)) !== sent) throw new DecodeError(FORMAT, end, "the checksum is wrong");
  return { type: readU16(bytes, 0), payload: bytes.subarray(HEAD_BYTES, end), length };
}

/** Returns the values of a payload with their tags, as views. Throws `DecodeError`. */
export function readTunerValues(
  payload: Uint8Array,
): readonly { readonly tag: number; readonly value: Uint8Array }[] {
  const values = [];
  for (let at = 0; at < payload.length; ) {
    const tag = payload[at]!;
    const low = payload[at + 1] ?? 0;
    const isLong = (low & 0x80) !== 0;
    const start = at + (isLong ? 3 : 2);
    const end = start + (isLong ? (low & 0x7f) | ((payload[at + 2] ?? 0) << 7) : low);
    if (end > payload.length) throw new DecodeError(FORMAT, at, "a value is too long");
    values.push({ tag, value: payload.subarray(start, end) });
    at = end;
  }
  return values;
}

/** Writes a value with its tag. */
export function tunerValue(tag: number, bytes: Uint8Array): Uint8Array {
  const { length } = bytes;
  const head = length < 0x80 ? [tag, length] : [tag, (length & 0x7f) | 0x80, length >> 7];
  return concatBytes([Uint8Array.from(head), bytes]);
}

/** Writes a frame of values. */
export function tunerFrame(type: number, values: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const payload = concatBytes(values);
  const head = new Uint8Array(HEAD_BYTES);
  writeU16(head, 0, type);
  writeU16(head, 2, payload.length);
  const frame = concatBytes([head, payload]);
  return concatBytes([frame, tunerU32(crc32(frame)).reverse()]);
}

/** Returns a number as 4 bytes. */
export function tunerU32(number: number): Uint8Array {
  const bytes = new Uint8Array(4);
  writeU32(bytes, 0, number);
  return bytes;
}
