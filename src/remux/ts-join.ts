import { concatBytes } from "../base/bytes.ts";
import { PAT_PID } from "../media/psi.ts";
import { deltaTicks } from "../media/timestamps.ts";
import { PacketAligner } from "../media/ts-align.ts";
import { clockReferenceAt } from "../media/ts-clock.ts";
import { isUnitStartAt, NULL_PID, pidAt, TS_PACKET_BYTES } from "../media/ts-packet.ts";
import { leadingStream, streamsOf, type TsStream } from "../media/ts-programme.ts";
import type { FirstTimes } from "../media/ts-restamp.ts";
import { TableReader, type TsTables } from "../media/ts-tables.ts";
import { nextUnit } from "../media/ts-units.ts";
import { type TablesWriter, tablesWriter } from "./ts-tables-writer.ts";

/** A key frame is searched for in this many bytes at most: two seconds at 16 Mbit/s, in whole packets. */
const MAX_PENDING_BYTES = 188 * 22_000;

/**
 * One of several transport streams that are joined: its packets from the first key frame on, with only one programme, and PAT and PMT
 * first. `TsRestamper.join` then fits its times to the stream before it.
 */
export class TsEntry {
  /** The version of PAT and PMT; it must differ from that of the stream before, whose tables may be others. */
  readonly version: number;
  readonly #aligner: PacketAligner;
  readonly #reader: TableReader;
  #tables: TsTables | undefined;
  #writer: TablesWriter | undefined;
  #tableRepeats = 0;
  /** Packets before the first key frame is found. */
  #pending: Uint8Array = new Uint8Array(0);
  #first: FirstTimes | undefined;
  #kept: ReadonlySet<number> = new Set();
  /** PIDs whose first unit at or after the key frame has not begun. */
  readonly #waiting = new Set<number>();

  /** `before`: the entry of the same stream so far, whose tables are known. */
  constructor(version: number, before?: TsEntry) {
    this.version = version;
    this.#aligner = before ? before.#aligner : new PacketAligner();
    this.#reader = before ? before.#reader : new TableReader();
  }

  /** The times of the first key frame; undefined until it was returned. */
  get first(): FirstTimes | undefined {
    return this.#first;
  }

  /** The tables that were written last, apart from their version; undefined until a packet was returned. */
  get tables(): TsTables | undefined {
    return this.#tables;
  }

  /** Takes the next bytes; returns packets that are the caller's, empty before the first key frame. */
  push(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    return this.pushPackets(this.#aligner.push(bytes));
  }

  /** The same for whole packets. */
  pushPackets(packets: Uint8Array): Uint8Array<ArrayBuffer> {
    for (let at = 0; at < packets.length; at += TS_PACKET_BYTES)
      if (this.#reader.wants(pidAt(packets, at)) && this.#reader.push(packets, at) && this.#first)
        this.#useTables();
    if (this.#first) return this.#filtered(packets);
    this.#pending = this.#pending.length === 0 ? packets.slice() : concatBytes([this.#pending, packets]);
    return this.#begin();
  }

  #begin(): Uint8Array<ArrayBuffer> {
    const leading = this.#useTables();
    const pending = this.#pending;
    let from = 0;
    while (leading) {
      const unit = nextUnit(pending, from, leading);
      // A unit whose type its bytes do not show yet is kept until they do.
      from = unit?.at ?? pending.length;
      if (unit?.isKey === undefined) break;
      if (unit.isKey) {
        this.#first = { dts: unit.dts, pts: unit.pts, clock: firstClock(pending, from) };
        for (const pid of this.#kept) if (pid !== leading.pid) this.#waiting.add(pid);
        this.#pending = new Uint8Array(0);
        const tables = new Uint8Array(this.#writer!.length);
        this.#writer!.write(tables, 0, this.#tableRepeats++);
        return concatBytes([tables, this.#filtered(pending.subarray(from))]);
      }
      from += TS_PACKET_BYTES;
    }
    // Without tables the unit may be anywhere.
    const dropped = leading ? from : 0;
    this.#pending = pending.slice(Math.max(dropped, pending.length - MAX_PENDING_BYTES));
    return new Uint8Array(0);
  }

  /** Applies the tables that were read last. Returns the stream whose key frames count, if they are known. */
  #useTables(): TsStream | undefined {
    const tables = this.#reader.tables(false);
    if (tables === undefined) return undefined;
    const streams = streamsOf(tables.pmt);
    this.#tables = tables;
    this.#writer = tablesWriter(tables, this.version);
    this.#kept = new Set([tables.pmt.pcrPid, ...streams.map(({ pid }) => pid)]);
    return leadingStream(streams);
  }

  /** Copies the packets of the programme, and writes its tables in place of each PAT. */
  #filtered(packets: Uint8Array): Uint8Array<ArrayBuffer> {
    let size = 0;
    for (let at = 0; at < packets.length; at += TS_PACKET_BYTES)
      size += pidAt(packets, at) === PAT_PID ? this.#writer!.length : TS_PACKET_BYTES;
    const out = new Uint8Array(size);
    let to = 0;
    for (let at = 0; at < packets.length; at += TS_PACKET_BYTES) {
      const pid = pidAt(packets, at);
      if (pid === PAT_PID && isUnitStartAt(packets, at))
        to = this.#writer!.write(out, to, this.#tableRepeats++);
      if (pid === NULL_PID || !this.#kept.has(pid) || this.#isEarly(packets, at, pid)) continue;
      out.set(packets.subarray(at, at + TS_PACKET_BYTES), to);
      to += TS_PACKET_BYTES;
    }
    return out.subarray(0, to);
  }

  /** Returns true for a packet of a unit that began before the key frame: the stream before has that time. */
  #isEarly(packets: Uint8Array, at: number, pid: number): boolean {
    if (!this.#waiting.has(pid)) return false;
    // A PID that only carries the clock has no units.
    if ((packets[at + 3]! & 0x10) === 0) return false;
    if (!isUnitStartAt(packets, at)) return true;
    const packet = packets.subarray(at, at + TS_PACKET_BYTES);
    const unit = nextUnit(packet, 0, { pid, kind: "data", codec: "", language: "" });
    if (unit && deltaTicks(unit.dts, this.#first!.dts) < 0) return true;
    this.#waiting.delete(pid);
    return false;
  }
}

function firstClock(packets: Uint8Array, from: number): number | undefined {
  for (let at = from; at < packets.length; at += TS_PACKET_BYTES) {
    const reference = pidAt(packets, at) === NULL_PID ? undefined : clockReferenceAt(packets, at);
    if (reference !== undefined) return Math.floor(reference / 300);
  }
  return undefined;
}
