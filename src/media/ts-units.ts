import { DecodeError } from "../base/errors.ts";
import { H264_NAL, isH264Slice } from "./h264.ts";
import { hevcNalType, isHevcKey } from "./hevc.ts";
import { findStartCode } from "./nal.ts";
import { readPesHeader } from "./pes.ts";
import { isRandomAccessAt, isUnitStartAt, payloadStartAt, pidAt, TS_PACKET_BYTES } from "./ts-packet.ts";
import type { TsStream } from "./ts-programme.ts";

/** The start of a PES packet with a PTS. Times are 90 kHz ticks. */
export interface TsUnit {
  /** Offset of the first transport packet of the unit, in bytes. */
  readonly at: number;
  readonly pts: number;
  readonly dts: number;
  /** True if the unit is a key frame; undefined if the available bytes do not show whether it is. */
  readonly isKey: boolean | undefined;
}

/** Number of bytes of an access unit that are searched for a slice, because parameter sets and SEI precede the slice. */
const HEAD_BYTES = 8192;

/**
 * Finds the first unit of `stream` with a PTS at or after offset `from` of `packets` (whole packets); undefined if there is none. Ignores
 * damaged packets and headers.
 */
export function nextUnit(packets: Uint8Array, from: number, stream: TsStream): TsUnit | undefined {
  for (let at = from; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES) {
    if (!isUnitStartAt(packets, at) || pidAt(packets, at) !== stream.pid) continue;
    const body = payloadStartAt(packets, at);
    const times = readTimes(packets, body, at + TS_PACKET_BYTES);
    if (!times) continue;
    const isKey = stream.kind === "video" ? isKeyframe(packets, at, body + times.payloadAt, stream) : true;
    return { at, pts: times.pts, dts: times.dts, isKey };
  }
  return undefined;
}

function readTimes(
  packets: Uint8Array,
  body: number,
  end: number,
): { pts: number; dts: number; payloadAt: number } | undefined {
  try {
    const { pts, dts, payloadAt } = readPesHeader(packets, body, end);
    return pts === undefined || dts === undefined ? undefined : { pts, dts, payloadAt };
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}

function isKeyframe(packets: Uint8Array, at: number, payload: number, stream: TsStream): boolean | undefined {
  const detect = KEY_DETECTORS[stream.codec];
  if (!detect) return isRandomAccessAt(packets, at);
  const quick = detect(packets.subarray(payload, at + TS_PACKET_BYTES));
  if (quick !== undefined) return quick;
  const head = unitHead(packets, at, stream.pid, HEAD_BYTES);
  return detect(head.bytes) ?? (head.isCut ? undefined : false);
}

/**
 * Returns the first `limit` bytes of elementary stream data of the unit at offset `at`. `isCut` is true if the packets end before the unit
 * and before the limit.
 */
export function unitHead(
  packets: Uint8Array,
  at: number,
  pid: number,
  limit: number,
): { bytes: Uint8Array; isCut: boolean } {
  const bytes = new Uint8Array(limit);
  const start = payloadStartAt(packets, at);
  let body = start + (readTimes(packets, start, at + TS_PACKET_BYTES)?.payloadAt ?? 0);
  let length = 0;
  let next = at;
  for (; next + TS_PACKET_BYTES <= packets.length && length < limit; next += TS_PACKET_BYTES) {
    if (next > at) {
      if (pidAt(packets, next) !== pid) continue;
      if (isUnitStartAt(packets, next)) break;
      body = payloadStartAt(packets, next);
    }
    const part = packets.subarray(body, next + TS_PACKET_BYTES).subarray(0, limit - length);
    bytes.set(part, length);
    length += part.length;
  }
  return {
    bytes: bytes.subarray(0, length),
    isCut: length < limit && next + TS_PACKET_BYTES > packets.length,
  };
}

/**
 * Detectors by codec. Each returns true if the access unit is a key frame; undefined if its first bytes do not show
 * the type yet.
 */
const KEY_DETECTORS: Readonly<Record<string, (head: Uint8Array) => boolean | undefined>> = {
  // A parameter set before the slice marks a recovery point, which broadcasts use instead of IDR pictures.
  h264: (head) =>
    firstNal(head, (header) => {
      const type = header & 0x1f;
      if (type === H264_NAL.sps || type === H264_NAL.idr) return true;
      return isH264Slice(header) ? false : undefined;
    }),
  hevc: (head) =>
    firstNal(head, (header) => {
      const type = hevcNalType(header);
      return type < 32 ? isHevcKey(type) : undefined;
    }),
  // A sequence header precedes an I picture (ISO 13818-2 6.2.2); decoding cannot start at a picture header without one.
  mpeg2video: (head) => firstNal(head, (code) => (code === 0xb3 ? true : code === 0 ? false : undefined)),
  mpeg1video: (head) => firstNal(head, (code) => (code === 0xb3 ? true : code === 0 ? false : undefined)),
};

function firstNal(head: Uint8Array, classify: (header: number) => boolean | undefined): boolean | undefined {
  for (let at = findStartCode(head, 0); at >= 0 && at + 3 < head.length; at = findStartCode(head, at + 3)) {
    const result = classify(head[at + 3]!);
    if (result !== undefined) return result;
  }
  return undefined;
}
