import type { RandomAccess } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import { TICKS_MODULUS, TICKS_PER_SECOND, wrapTicks } from "../media/timestamps.ts";
import { pidAt, TS_PACKET_BYTES } from "../media/ts-packet.ts";
import { leadingStream, streamsOf, type TsStream } from "../media/ts-programme.ts";
import { detectLayout, type TsLayout } from "../media/ts-sync.ts";
import { TableReader, type TsTables } from "../media/ts-tables.ts";
import { TsReader } from "./ts-reader.ts";

/** What the head of a transport stream file says. */
export interface TsHead {
  readonly layout: TsLayout;
  readonly tables: TsTables;
  readonly streams: readonly TsStream[];
  /** Its units decide where segments begin. */
  readonly leading: TsStream;
  /** Whole packets from the start of the file: the first frame of each track is in it, if the file is sound. */
  readonly packets: Uint8Array;
}

/** A place in the file where a segment could begin; `ticks` are counted from the first unit. */
export interface TsPlace {
  readonly at: number;
  readonly ticks: number;
}

/** The clock of a file, from its head and its tail. */
export interface TsTimes {
  readonly firstDts: number;
  /** From the first unit to the end of the last. */
  readonly durationTicks: number;
  /** Between two units. */
  readonly frameTicks: number;
  /** Keyframes at the head. */
  readonly keys: readonly TsPlace[];
  /** One keyframe at the tail, where there is one. */
  readonly tailKey: TsPlace | undefined;
  /** The clock runs on from head to tail: a unit's DTS tells its time. Else bytes do. */
  readonly isClockSound: boolean;
}

const HEAD_STEP_BYTES = 512 * 1024;
/** A stream that says nothing of its programmes for so long is none. */
const MAX_HEAD_BYTES = 4 * 1024 * 1024;
const KEY_STEP_BYTES = 256 * 1024;
/** How far the head is read for the keyframe at which the first segment ends: that segment needs these bytes anyway. */
const MAX_KEY_BYTES = 12 * 1024 * 1024;
const MAX_KEYS = 256;
/** A frame or two begin in it; where none does, more is read. */
const TAIL_BYTES = 128 * 1024;
const MAX_TAIL_BYTES = 4 * 1024 * 1024;
/** Head and tail contradict each other where the bit rates they imply are so far apart. */
const MAX_RATE_RATIO = 16;

/** Finds layout, tables and streams. Rejects with `SluiceError("unsupported_container")`. */
export async function readTsHead(source: RandomAccess, signal?: AbortSignal): Promise<TsHead> {
  const options = signal ? { signal } : {};
  for (let length = HEAD_STEP_BYTES; ; length += HEAD_STEP_BYTES) {
    const end = Math.min(length, source.size);
    const bytes = await source.read({ start: 0, end }, options);
    const layout = detectLayout(bytes);
    if (!layout)
      throw new SluiceError("unsupported_container", "expected MPEG-TS packets, found no sync bytes");
    const packets = await new TsReader(source, layout).packets(0, end, signal);
    const isFinal = length >= MAX_HEAD_BYTES || end === source.size;
    const tables = readTables(packets, isFinal);
    const streams = tables ? streamsOf(tables.pmt) : [];
    const leading = leadingStream(streams);
    if (tables && leading) return { layout, tables, streams, leading, packets };
    if (isFinal)
      throw new SluiceError("unsupported_container", "an MPEG-TS file without video or audio in its tables");
  }
}

function readTables(packets: Uint8Array, isFinal: boolean): TsTables | undefined {
  const reader = new TableReader();
  for (let at = 0; at < packets.length; at += TS_PACKET_BYTES) {
    if (!reader.wants(pidAt(packets, at)) || !reader.push(packets, at)) continue;
    const tables = reader.tables(false);
    if (tables) return tables;
  }
  return reader.tables(isFinal);
}

/**
 * Learns the clock from the head and the tail of a file. Of the head no more is read than a first segment of `firstTicks` takes.
 * Rejects with `SluiceError("broken_media")` where no frame has a time.
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
    throw new SluiceError("broken_media", `no ${leading.codec} frame with a time at the head`);
  if (frameTicks === Number.POSITIVE_INFINITY) frameTicks = TICKS_PER_SECOND / 25;
  const tail = await readTail(reader, leading, firstDts, signal);
  const durationTicks = (tail?.last.ticks ?? 0) + frameTicks;
  const headTicks = Math.max(frameTicks, last.ticks);
  // Without a sound clock: as long as the head's bit rate says.
  const byRate = (size / Math.max(TS_PACKET_BYTES, last.at)) * headTicks;
  const ratio = durationTicks / byRate;
  const isClockSound =
    tail !== undefined && (size <= MAX_TAIL_BYTES || (ratio < MAX_RATE_RATIO && ratio > 1 / MAX_RATE_RATIO));
  return {
    firstDts,
    durationTicks: isClockSound && durationTicks > 0 ? durationTicks : byRate,
    frameTicks,
    keys,
    tailKey: tail?.key,
    isClockSound: isClockSound && durationTicks > 0,
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

/** Ticks from `firstDts` on, over the wrap; a file shorter than 26 hours is assumed, and a little may lie before. */
export function ticksSince(dts: number, firstDts: number): number {
  const ticks = wrapTicks(dts - firstDts);
  return ticks > TICKS_MODULUS - 600 * TICKS_PER_SECOND ? ticks - TICKS_MODULUS : ticks;
}
