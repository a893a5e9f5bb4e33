import { DecodeError } from "../base/errors.ts";
import { H264_NAL, isH264Slice } from "./h264.ts";
import { hevcNalType, isHevcKey } from "./hevc.ts";
import { findStartCode } from "./nal.ts";
import { readPesHeader } from "./pes.ts";
import { isUnitStartAt, payloadStartAt, pidAt, readTsPacket, TS_PACKET_BYTES } from "./ts-packet.ts";
import type { TsStream } from "./ts-programme.ts";

/** A PES packet with a time, as it begins in a run of transport packets. */
export interface TsUnit {
  /** Where its first transport packet begins. */
  readonly at: number;
  readonly pts: number;
  readonly dts: number;
  /** Undefined where the bytes end before it can be told. */
  readonly isKey: boolean | undefined;
}

/** So much of an access unit is looked at before it is held to be no keyframe: parameter sets and SEI come before a slice. */
const HEAD_BYTES = 8192;

/**
 * The first unit of `stream` that begins at or after `from` in `packets` (whole packets) and has a time, or undefined.
 * Damaged packets and headers are passed over.
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
  const verdict = VERDICTS[stream.codec];
  if (!verdict) return readTsPacket(packets, at).isRandomAccess;
  const quick = verdict(packets.subarray(payload, at + TS_PACKET_BYTES));
  if (quick !== undefined) return quick;
  const head = unitHead(packets, at, stream.pid, HEAD_BYTES);
  return verdict(head.bytes) ?? (head.isCut ? undefined : false);
}

/**
 * The first bytes of elementary stream, at most `limit`, of the unit that begins at `at`. `isCut` where the packets end before
 * the unit or the limit does.
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

/** From the first bytes of an access unit: a keyframe, none, or not to be told yet. */
const VERDICTS: Readonly<Record<string, (head: Uint8Array) => boolean | undefined>> = {
  // A parameter set before the slice marks a recovery point, which broadcasts have instead of IDR pictures.
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
  // A sequence header comes before an I picture (ISO 13818-2 6.2.2); a picture header without one is no place to join.
  mpeg2video: (head) => firstNal(head, (code) => (code === 0xb3 ? true : code === 0 ? false : undefined)),
  mpeg1video: (head) => firstNal(head, (code) => (code === 0xb3 ? true : code === 0 ? false : undefined)),
};

function firstNal(head: Uint8Array, judge: (header: number) => boolean | undefined): boolean | undefined {
  for (let at = findStartCode(head, 0); at >= 0 && at + 3 < head.length; at = findStartCode(head, at + 3)) {
    const verdict = judge(head[at + 3]!);
    if (verdict !== undefined) return verdict;
  }
  return undefined;
}
