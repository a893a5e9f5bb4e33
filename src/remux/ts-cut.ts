import { isUnitStartAt, NULL_PID, pidAt, TS_PACKET_BYTES } from "../media/ts-packet.ts";
import type { TsStream } from "../media/ts-programme.ts";
import type { TsTables } from "../media/ts-tables.ts";
import { passTables, tableCount } from "./ts-tables-writer.ts";

/** How far beyond a border the rest of an audio unit is looked for, in bytes of packets. */
export const STRADDLE_BYTES = 1024 * 1024;

/** What a segment of a stream that passes through is made of. */
export interface TsCut {
  readonly tables: TsTables;
  readonly streams: readonly TsStream[];
  /** Cut by place; other audio is cut by its own units. */
  readonly leading: TsStream;
  /** The packets between the two borders. */
  readonly body: Uint8Array;
  /** Packets after the end: the rest of audio units that began before it is taken from them. */
  readonly after: Uint8Array;
  /** The first segment has no one before it who took the rest of a unit. */
  readonly isFirst: boolean;
  readonly seconds: number;
}

/**
 * A segment of packets as they came: PAT and PMT first and often, other programmes and stuffing left out. An audio unit that
 * straddles a border stays whole in the segment where it began, so counters run on from segment to segment on every PID.
 */
export function cutSegment(cut: TsCut): Uint8Array<ArrayBuffer> {
  const audio = cut.streams.filter((stream) => stream.kind === "audio" && stream.pid !== cut.leading.pid);
  const audioPids = new Set(audio.map(({ pid }) => pid));
  const kept = new Set([cut.tables.pmt.pcrPid, ...cut.streams.map(({ pid }) => pid)]);
  kept.delete(NULL_PID);
  const runs = [
    ...keptRuns(cut.body, kept, cut.isFirst ? new Set() : new Set(audioPids)),
    ...straddlingRuns(cut.after, audioPids),
  ];
  return join(runs, cut);
}

/** Whether `after` holds the begin of a new unit on every audio PID: no more of it is needed. */
export function hasAllStarts(cut: Pick<TsCut, "streams" | "leading">, after: Uint8Array): boolean {
  const open = new Set<number>();
  for (const { kind, pid } of cut.streams) if (kind === "audio" && pid !== cut.leading.pid) open.add(pid);
  for (let at = 0; at < after.length && open.size > 0; at += TS_PACKET_BYTES) {
    if (isUnitStartAt(after, at)) open.delete(pidAt(after, at));
  }
  return open.size === 0;
}

/** Runs of packets to keep; those of `waiting` PIDs only from their first unit on. */
function keptRuns(packets: Uint8Array, kept: ReadonlySet<number>, waiting: Set<number>): Uint8Array[] {
  const runs: Uint8Array[] = [];
  let start = -1;
  for (let at = 0; at < packets.length; at += TS_PACKET_BYTES) {
    const pid = pidAt(packets, at);
    let isKept = kept.has(pid);
    if (waiting.size > 0 && waiting.has(pid)) {
      if (isUnitStartAt(packets, at) || at >= STRADDLE_BYTES) waiting.delete(pid);
      else isKept = false;
    }
    if (isKept === start >= 0) continue;
    if (start >= 0) runs.push(packets.subarray(start, at));
    start = isKept ? at : -1;
  }
  if (start >= 0) runs.push(packets.subarray(start));
  return runs;
}

function straddlingRuns(after: Uint8Array, audioPids: Set<number>): Uint8Array[] {
  const runs: Uint8Array[] = [];
  const open = new Set(audioPids);
  const end = Math.min(after.length, STRADDLE_BYTES);
  for (let at = 0; at < end && open.size > 0; at += TS_PACKET_BYTES) {
    const pid = pidAt(after, at);
    if (!open.has(pid)) continue;
    if (isUnitStartAt(after, at)) open.delete(pid);
    else runs.push(after.subarray(at, at + TS_PACKET_BYTES));
  }
  return runs;
}

/** Joins the runs, with the tables spread evenly over them. */
function join(runs: readonly Uint8Array[], cut: TsCut): Uint8Array<ArrayBuffer> {
  const writer = passTables(cut.tables);
  const count = tableCount(cut.seconds);
  let bytes = 0;
  for (const run of runs) bytes += run.length;
  const out = new Uint8Array(bytes + count * writer.length);
  const placeOf = (index: number) => Math.floor((index * bytes) / count / TS_PACKET_BYTES) * TS_PACKET_BYTES;
  let table = 0;
  let at = 0;
  let copied = 0;
  for (const run of runs) {
    let from = 0;
    while (from < run.length) {
      while (table < count && placeOf(table) <= copied) at = writer.write(out, at, table++);
      const room = table < count ? placeOf(table) - copied : run.length;
      const part = run.subarray(from, from + room);
      out.set(part, at);
      at += part.length;
      copied += part.length;
      from += part.length;
    }
  }
  while (table < count) at = writer.write(out, at, table++);
  return out;
}
