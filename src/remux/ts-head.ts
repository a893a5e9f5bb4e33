import type { RandomAccess } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import { TICKS_MODULUS, TICKS_PER_SECOND, wrapTicks } from "../media/timestamps.ts";
import { pidAt, TS_PACKET_BYTES } from "../media/ts-packet.ts";
import { leadingStream, streamsOf, type TsStream } from "../media/ts-programme.ts";
import { detectLayout, type TsLayout } from "../media/ts-sync.ts";
import { TableReader, type TsTables } from "../media/ts-tables.ts";
import { TsReader } from "./ts-reader.ts";

/** Packet layout and streams of a transport stream file, read from its head. */
export interface TsHead {
  readonly layout: TsLayout;
  readonly tables: TsTables;
  /** True if the file has no other programmes. */
  readonly isOnlyProgramme: boolean;
  readonly streams: readonly TsStream[];
  /** The stream whose units decide where segments begin. */
  readonly leading: TsStream;
  /** Whole packets from the start of the file; includes the first frame of each track unless the file is damaged. */
  readonly packets: Uint8Array;
}

/** A byte position where a segment can begin; `ticks` (90 kHz) are relative to the first unit. */
export interface TsPlace {
  readonly at: number;
  readonly ticks: number;
}

/** Timing of a file, measured at its head and tail. All times in 90 kHz ticks. */
export interface TsTimes {
  readonly firstDts: number;
  /** From the first unit to the end of the last. */
  readonly durationTicks: number;
  /** The shortest distance between two units. */
  readonly frameTicks: number;
  /** Key frames at the head. */
  readonly keys: readonly TsPlace[];
  /** The last key frame at the tail, if there is one. */
  readonly tailKey: TsPlace | undefined;
  /** True if DTS values are continuous from head to tail. If false, time is estimated from byte positions. */
  readonly isClockContinuous: boolean;
}

const HEAD_STEP_BYTES = 512 * 1024;
/** How far the head is searched for PAT and PMT. */
const MAX_HEAD_BYTES = 4 * 1024 * 1024;
const KEY_STEP_BYTES = 256 * 1024;
/** How far the head is read for the key frame that ends the first segment; that segment needs these bytes anyway. */
const MAX_KEY_BYTES = 12 * 1024 * 1024;
const MAX_KEYS = 256;
/** Usually contains the start of a frame; if not, more is read. */
const TAIL_BYTES = 128 * 1024;
const MAX_TAIL_BYTES = 4 * 1024 * 1024;
/** The clock is unusable if the bit rates of head and whole file differ by more than this factor. */
const MAX_RATE_RATIO = 16;

/** Detects layout, tables and streams. Rejects with `SluiceError("unsupported_container")` if there are none. */
export async function readTsHead(source: RandomAccess, signal?: AbortSignal): Promise<TsHead> {
  const options = signal ? { signal } : {};
  for (let length = HEAD_STEP_BYTES; ; length += HEAD_STEP_BYTES) {
    const end = Math.min(length, source.size);
    const bytes = await source.read({ start: 0, end }, options);
    const layout = detectLayout(bytes);
    if (!layout) throw new SluiceError("unsupported_container", "the file has no MPEG-TS sync bytes");
    const packets = await new TsReader(source, layout).packets(0, end, signal);
    const isFinal = length >= MAX_HEAD_BYTES || end === source.size;
    const reader = new TableReader();
    const tables = readTables(reader, packets, isFinal);
    const isOnlyProgramme = reader.programmes === 1;
    const streams = tables ? streamsOf(tables.pmt) : [];
    const leading = leadingStream(streams);
    if (tables && leading) return { layout, tables, isOnlyProgramme, streams, leading, packets };
    if (isFinal)
      throw new SluiceError(
        "unsupported_container",
        "the MPEG-TS file lists no video or audio in its tables",
      );
  }
}

function readTables(reader: TableReader, packets: Uint8Array, isFinal: boolean): TsTables | undefined {
  for (let at = 0; at < packets.length; at += TS_PACKET_BYTES) {
    if (!reader.wants(pidAt(packets, at)) || !reader.push(packets, at)) continue;
    const tables = reader.tables(false);
    if (tables) return tables;
  }
  return reader.tables(isFinal);
}

/**
 * Measures the timing of a file from its head and tail. Reads no more of the head than a first segment of `firstTicks` needs.
 * Rejects with `SluiceError("broken_media")` if no frame at the head has a time.
 */
export async function readTsTimes(
  reader: TsReader,
  leading: TsStream,
  firstTicks: number,
  signal?: AbortSignal,
): Promise<TsTimes> {
  const { size } = reader.source;
  const keys: TsPlace[] = [];
  let firstDts: number | undefined;
  let last: TsPlace | undefined;
  let frameTicks = Number.POSITIVE_INFINITY;
  for await (const unit of reader.units(leading, 0, KEY_STEP_BYTES, signal)) {
    firstDts ??= unit.dts;
    const place = { at: unit.at, ticks: ticksSince(unit.dts, firstDts) };
    if (last && place.ticks > last.ticks) frameTicks = Math.min(frameTicks, place.ticks - last.ticks);
    last = place;
    if (unit.isKey && keys.length < MAX_KEYS) keys.push(place);
    const isLong = place.ticks >= (leading.kind === "audio" ? TICKS_PER_SECOND : firstTicks - frameTicks / 2);
    if ((place.ticks > 0 && isLong && unit.isKey) || unit.at > MAX_KEY_BYTES) break;
  }
  if (firstDts === undefined || !last)
    throw new SluiceError("broken_media", `no ${leading.codec} frame at the start of the file has a time`);
  if (frameTicks === Number.POSITIVE_INFINITY) frameTicks = TICKS_PER_SECOND / 25;
  const tail = await readTail(reader, leading, firstDts, signal);
  const durationTicks = (tail?.last.ticks ?? 0) + frameTicks;
  const headTicks = Math.max(frameTicks, last.ticks);
  // If the clock is unusable, the bit rate of the head gives the duration.
  const byRate = (size / Math.max(TS_PACKET_BYTES, last.at)) * headTicks;
  const ratio = durationTicks / byRate;
  const isClockContinuous =
    tail !== undefined && (size <= MAX_TAIL_BYTES || (ratio < MAX_RATE_RATIO && ratio > 1 / MAX_RATE_RATIO));
  return {
    firstDts,
    durationTicks: isClockContinuous && durationTicks > 0 ? durationTicks : byRate,
    frameTicks,
    keys,
    tailKey: tail?.key,
    isClockContinuous: isClockContinuous && durationTicks > 0,
  };
}

async function readTail(
  reader: TsReader,
  leading: TsStream,
  firstDts: number,
  signal?: AbortSignal,
): Promise<{ last: TsPlace; key: TsPlace | undefined } | undefined> {
  const { size } = reader.source;
  for (let length = TAIL_BYTES; ; length *= 4) {
    let last: TsPlace | undefined;
    let key: TsPlace | undefined;
    for await (const unit of reader.units(leading, Math.max(0, size - length), length, signal)) {
      last = { at: unit.at, ticks: ticksSince(unit.dts, firstDts) };
      if (unit.isKey) key = last;
    }
    if (last) return { last, key };
    if (length >= MAX_TAIL_BYTES || length >= size) return undefined;
  }
}

/** Ticks from `firstDts` to `dts` across the 33-bit wrap (26 hours); up to ten minutes before `firstDts` count as negative. */
export function ticksSince(dts: number, firstDts: number): number {
  const ticks = wrapTicks(dts - firstDts);
  return ticks > TICKS_MODULUS - 600 * TICKS_PER_SECOND ? ticks - TICKS_MODULUS : ticks;
}
