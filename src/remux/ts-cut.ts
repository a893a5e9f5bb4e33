import { BufferPool } from "../base/buffer-pool.ts";
import { concatBytes } from "../base/bytes.ts";
import { isUnitStartAt, NULL_PID, pidAt, TS_PACKET_BYTES } from "../media/ts-packet.ts";
import type { TsStream } from "../media/ts-programme.ts";
import { alignPackets } from "../media/ts-sync.ts";
import type { TsTables } from "../media/ts-tables.ts";
import { Remuxer } from "./remuxer.ts";
import { type TablesWriter, tableCount, tablesWriter } from "./ts-tables-writer.ts";

/** How far beyond a boundary the rest of an audio unit is searched for. */
export const STRADDLE_BYTES = 1024 * 1024;
/** Step size for reading the rest of straddling audio units; most end in the first step. */
export const AFTER_STEP_BYTES = 64 * 1024;

/** The parts of a transport stream whose packets pass through unchanged. */
export interface TsCut {
  readonly tables: TsTables;
  readonly streams: readonly TsStream[];
  /** Split exactly at the boundaries; other audio is split between its own units. */
  readonly leading: TsStream;
  /** Distance of packets in the input: 188, 192 or 204. */
  readonly stride: number;
  /** Bytes of the input before the end boundary; the input continues with packets that hold the rest of audio units. */
  readonly bodyBytes: number;
  /** True for the first segment: no earlier segment holds the start of its packets' audio units. */
  readonly isFirst: boolean;
  readonly seconds: number;
}

/**
 * Cuts a segment out of a transport stream, with PAT and PMT first and repeated, without other programmes and stuffing. An audio unit
 * that crosses a boundary belongs to the segment of its first packet, so continuity counters are continuous across segments. Its input
 * and output are in memory of `pool`.
 */
export function tsCutter(
  cut: TsCut,
  pool: BufferPool,
): Remuxer<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  const cutter = new TsCutter(cut, pool);
  return new Remuxer({
    transform(bytes) {
      const packets = cutter.push(bytes, false);
      pool.give(bytes);
      return packets;
    },
    flush: () => [...cutter.push(new Uint8Array(0), true), ...cutter.end()],
    isDone: () => cutter.isDone,
  });
}

/** Cuts a segment out of consecutive whole packets; see {@link tsCutter}. */
export function cutSegment(cut: Omit<TsCut, "stride">, packets: Uint8Array): Uint8Array<ArrayBuffer> {
  const cutter = new TsCutter({ ...cut, stride: TS_PACKET_BYTES }, new BufferPool(), true);
  const parts = [...cutter.push(packets, true), ...cutter.end()];
  return parts.length === 1 ? parts[0]! : concatBytes(parts);
}

class TsCutter {
  readonly #cut: TsCut;
  readonly #pool: BufferPool;
  readonly #kept: ReadonlySet<number>;
  /** Audio PIDs whose first unit has not begun yet, and those whose last unit has not ended yet. */
  readonly #waiting: Set<number>;
  readonly #open: Set<number>;
  readonly #writer: TablesWriter;
  readonly #count: number;
  #tables = 0;
  /** Position of `#rest` in the input. */
  #at = 0;
  #rest: Uint8Array = new Uint8Array(0);
  #isSynced: boolean;

  constructor(cut: TsCut, pool: BufferPool, isSynced = false) {
    this.#cut = cut;
    this.#pool = pool;
    this.#isSynced = isSynced;
    const audio = cut.streams.filter((stream) => stream.kind === "audio" && stream.pid !== cut.leading.pid);
    const kept = new Set([cut.tables.pmt.pcrPid, ...cut.streams.map(({ pid }) => pid)]);
    kept.delete(NULL_PID);
    this.#kept = kept;
    this.#waiting = new Set(cut.isFirst ? [] : audio.map(({ pid }) => pid));
    this.#open = new Set(audio.map(({ pid }) => pid));
    this.#writer = tablesWriter(cut.tables);
    this.#count = tableCount(cut.seconds);
  }

  /** True if no unit that began in the segment continues in the input. */
  get isDone(): boolean {
    const after = this.#at - this.#cut.bodyBytes;
    return after >= 0 && (this.#open.size === 0 || after >= STRADDLE_BYTES);
  }

  /** Takes the next bytes and returns the packets of the segment in them. */
  push(input: Uint8Array, isEnd: boolean): Uint8Array<ArrayBuffer>[] {
    const bytes = this.#rest.length === 0 ? input : concatBytes([this.#rest, input]);
    const aligned = alignPackets(bytes, this.#cut.stride, this.#isSynced, isEnd);
    const { packets, starts } = aligned;
    const base = this.#at;
    this.#rest = bytes.slice(aligned.used);
    this.#at += aligned.used;
    this.#isSynced = aligned.isSynced;
    const end = packets.length > 0 ? base + starts.at(-1)! : base;
    const tables = this.#tablesDue(end) - this.#tables;
    const out = this.#pool.take(packets.length + tables * this.#writer.length);
    let to = 0;
    let from = -1;
    for (let i = 0; i < starts.length; i++) {
      const at = i * TS_PACKET_BYTES;
      const position = base + starts[i]!;
      const isDue = this.#tables < this.#tablesDue(position);
      const isKept = this.#keeps(packets, at, position);
      if (from >= 0 && (isDue || !isKept)) {
        out.set(packets.subarray(from, at), to);
        to += at - from;
        from = -1;
      }
      if (isDue) to = this.#writeTables(out, to, this.#tablesDue(position));
      if (isKept && from < 0) from = at;
    }
    if (from >= 0) {
      out.set(packets.subarray(from), to);
      to += packets.length - from;
    }
    return to > 0 ? [out.subarray(0, to)] : [];
  }

  /** Returns the rest of the tables, so that the next segment continues their continuity counters. */
  end(): Uint8Array<ArrayBuffer>[] {
    if (this.#tables === this.#count) return [];
    const out = new Uint8Array((this.#count - this.#tables) * this.#writer.length);
    this.#writeTables(out, 0, this.#count);
    return [out];
  }

  /** How many tables precede the packet at this position of the input. They are distributed evenly. */
  #tablesDue(position: number): number {
    const { bodyBytes } = this.#cut;
    if (position >= bodyBytes) return this.#count;
    return Math.min(this.#count, 1 + Math.floor((position * this.#count) / Math.max(1, bodyBytes)));
  }

  #writeTables(out: Uint8Array, to: number, until: number): number {
    while (this.#tables < until) to = this.#writer.write(out, to, this.#tables++);
    return to;
  }

  #keeps(packets: Uint8Array, at: number, position: number): boolean {
    const pid = pidAt(packets, at);
    const after = position - this.#cut.bodyBytes;
    if (after >= 0) {
      if (after >= STRADDLE_BYTES || !this.#open.has(pid)) return false;
      if (!isUnitStartAt(packets, at)) return true;
      this.#open.delete(pid);
      return false;
    }
    if (!this.#kept.has(pid)) return false;
    if (!this.#waiting.has(pid)) return true;
    if (!isUnitStartAt(packets, at) && position < STRADDLE_BYTES) return false;
    this.#waiting.delete(pid);
    return true;
  }
}

/** Returns true if `after` has the start of a new unit on every audio PID, so that no more of it is needed. */
export function hasAllStarts(cut: Pick<TsCut, "streams" | "leading">, after: Uint8Array): boolean {
  const open = new Set<number>();
  for (const { kind, pid } of cut.streams) if (kind === "audio" && pid !== cut.leading.pid) open.add(pid);
  for (let at = 0; at < after.length && open.size > 0; at += TS_PACKET_BYTES) {
    if (isUnitStartAt(after, at)) open.delete(pidAt(after, at));
  }
  return open.size === 0;
}
