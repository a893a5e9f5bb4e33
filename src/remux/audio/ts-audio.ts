import { concatBytes } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { readPesHeader } from "../../media/pes.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../../media/timestamps.ts";
import { isUnitStartAt, payloadStartAt, pidAt, TS_PACKET_BYTES } from "../../media/ts-packet.ts";
import { type Frame, followedByFrame, frameAt } from "../packed-audio.ts";
import { TS_BASE_SECONDS, type TsCodec, type TsMuxPacket } from "../ts-mux-input.ts";

/** A PES packet of audio. */
export interface AudioUnit {
  /** Offset of its first transport packet. */
  readonly at: number;
  /** Presentation time of the first frame that begins in it, in ticks; undefined if it states none. */
  readonly pts: number | undefined;
  readonly bytes: Uint8Array;
}

/** Audio frames of a segment, and the codec of the first one. */
export interface SplitFrames {
  readonly codec: TsCodec | undefined;
  /** The frames that end before the segment. */
  readonly before: readonly TsMuxPacket[];
  readonly own: readonly TsMuxPacket[];
}

/** Limit of PES data in one unit; audio units have a 16-bit length. */
const MAX_UNIT_BYTES = 128 * 1024;
/** E-AC-3: the frame belongs to the one before it (ETSI TS 102 366 E.1.3.1.1). */
const DEPENDENT_STREAM = 1;

/** Returns the units of one PID, in order. Bytes before the first unit are ignored. */
export function audioUnits(packets: Uint8Array, pid: number): AudioUnit[] {
  const units: { at: number; pts: number | undefined; parts: Uint8Array[]; size: number }[] = [];
  for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES) {
    if (pidAt(packets, at) !== pid) continue;
    const end = at + TS_PACKET_BYTES;
    let body = Math.min(end, payloadStartAt(packets, at));
    if (isUnitStartAt(packets, at)) {
      const header = readHeader(packets, body, end);
      body += header?.payloadAt ?? 0;
      units.push({ at, pts: header?.pts, parts: [], size: 0 });
    }
    const unit = units.at(-1);
    if (!unit || unit.size > MAX_UNIT_BYTES) continue;
    unit.parts.push(packets.subarray(body, end));
    unit.size += end - body;
  }
  return units.map(({ at, pts, parts }) => ({ at, pts, bytes: concatBytes(parts) }));
}

function readHeader(packets: Uint8Array, at: number, end: number) {
  try {
    return readPesHeader(packets, at, end);
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}

/** Returns the units of the last `seconds`. */
export function lastUnits(units: readonly AudioUnit[], seconds: number): readonly AudioUnit[] {
  const last = units.findLast(({ pts }) => pts !== undefined)?.pts;
  const from = units.findIndex(
    ({ pts }) => pts !== undefined && deltaTicks(last!, pts) < seconds * TICKS_PER_SECOND,
  );
  return from < 0 ? [] : units.slice(from);
}

/** Returns the index of the first unit at or after a time in ticks, which may be infinite; the number of units if there is none. */
export function firstFrom(units: readonly AudioUnit[], ticks: number): number {
  if (!Number.isFinite(ticks)) return ticks < 0 ? 0 : units.length;
  const found = units.findIndex(({ pts }) => pts !== undefined && deltaTicks(pts, Math.round(ticks)) >= 0);
  return found < 0 ? units.length : found;
}

/**
 * Splits units into frames. A frame belongs to the segment in which it ends, so that a frame across a border belongs to one segment.
 * Times are relative to `TS_BASE_SECONDS`, as in {@link TsMuxPacket}; they continue through an overflow of the clock.
 * @param find returns the frame at an offset.
 */
export function splitFrames(
  before: readonly AudioUnit[],
  own: readonly AudioUnit[],
  find: (bytes: Uint8Array, at: number) => Frame | undefined = frameAt,
): SplitFrames {
  const units = [...before, ...own];
  const bytes = concatBytes(units.map((unit) => unit.bytes));
  const marks: { offset: number; pts: number }[] = [];
  let offset = 0;
  let border = 0;
  for (const [index, unit] of units.entries()) {
    if (index === before.length) border = offset;
    if (unit.pts !== undefined) marks.push({ offset, pts: unit.pts });
    offset += unit.bytes.length;
  }
  const origin = marks[0];
  if (own.length === 0 || !origin) return { codec: undefined, before: [], own: [] };
  const secondsOf = (pts: number) =>
    (origin.pts + deltaTicks(pts, origin.pts)) / TICKS_PER_SECOND - TS_BASE_SECONDS;
  const frames: (TsMuxPacket & { end: number })[] = [];
  let codec: TsCodec | undefined;
  let seconds = secondsOf(origin.pts);
  let mark = 0;
  let isInSync = false;
  for (let at = 0; at < bytes.length; ) {
    const frame = find(bytes, at);
    const end = at + (frame?.frameBytes ?? 1);
    if (
      !frame ||
      frame.frameBytes < 4 ||
      (codec !== undefined && frame.codec !== codec) ||
      end > bytes.length ||
      (!isInSync && !followedByFrame(bytes, at, frame, find))
    ) {
      isInSync = false;
      at++;
      continue;
    }
    isInSync = true;
    codec = frame.codec;
    const last = frames.at(-1);
    if (codec === "eac3" && bytes[at + 2]! >> 6 === DEPENDENT_STREAM && last?.end === at) {
      frames[frames.length - 1] = { ...last, data: bytes.subarray(last.end - last.data.length, end), end };
      at = end;
      continue;
    }
    for (; mark < marks.length && marks[mark]!.offset <= at; mark++) seconds = secondsOf(marks[mark]!.pts);
    const durationSeconds = frame.samples / frame.sampleRate;
    frames.push({
      track: 0,
      ptsSeconds: seconds,
      durationSeconds,
      isKey: true,
      data: bytes.subarray(at, end),
      end,
    });
    seconds += durationSeconds;
    at = end;
  }
  return {
    codec,
    before: frames.filter(({ end }) => end <= border),
    own: frames.filter(({ end }) => end > border),
  };
}
