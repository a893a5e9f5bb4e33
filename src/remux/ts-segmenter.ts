import { SluiceError } from "../base/errors.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import { PacketAligner } from "../media/ts-align.ts";
import { pidAt, TS_PACKET_BYTES } from "../media/ts-packet.ts";
import { leadingStream, streamsOf, type TsStream } from "../media/ts-programme.ts";
import { TableReader, type TsTables } from "../media/ts-tables.ts";
import { nextUnit, type TsUnit } from "../media/ts-units.ts";
import { cutSegment, hasAllStarts, STRADDLE_BYTES } from "./ts-cut.ts";

/** A segment of a transport stream that can be played on its own, with PAT and PMT first. */
export interface TsSegment {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Time since the first segment; discontinuities of the clock count as one frame. */
  readonly startSeconds: number;
  readonly durationSeconds: number;
  /** DTS of its first unit in the stream: 33 bits, 90 kHz. */
  readonly firstDts: number;
  /** True if the clock or the tracks change between the previous segment and this one (RFC 8216 4.3.2.3). */
  readonly isDiscontinuous: boolean;
  /** True if it begins with a key frame; false if a limit forced the cut. */
  readonly isKey: boolean;
}

export interface TsSegmenterOptions {
  /** A segment ends at the first key frame after this time (default 6). */
  readonly targetSeconds?: number;
  /** The same for the first segment, if it is to be ready sooner. */
  readonly firstSeconds?: number;
  /** Size limit of a segment without a key frame to cut at (default 32 MiB: 6 s of 40 Mbit/s). */
  readonly maxSegmentBytes?: number;
}

interface Programme {
  readonly tables: TsTables;
  readonly streams: readonly TsStream[];
  readonly leading: TsStream;
}

/** A position in the buffer where a segment begins. */
interface Boundary {
  /** Offset in the buffer. */
  readonly at: number;
  readonly dts: number;
  readonly ticks: number;
  readonly isKey: boolean;
  readonly isDiscontinuous: boolean;
}

/** Input is processed in slices of this size, so that a huge chunk does not grow the buffer. */
const SLICE_BYTES = 256 * 1024;
/** How long to wait for the PMT of every programme in the PAT, because some may be missing from the stream. */
const TABLE_WAIT_BYTES = 4096 * TS_PACKET_BYTES;
/** After this many target durations without a key frame, a segment is cut at any frame. */
const MAX_TARGETS_WITHOUT_KEY = 4;
/** Steps of the DTS outside these limits are discontinuities. */
const MAX_BACK_TICKS = 0.1 * TICKS_PER_SECOND;
const MAX_STEP_TICKS = 3 * TICKS_PER_SECOND;
/** How long after a boundary to wait for the rest of a straddling audio unit. */
const STRADDLE_TICKS = 0.5 * TICKS_PER_SECOND;

/**
 * Cuts a transport stream into segments at key frames (by time if there is no video) without remuxing. Input can arrive in any chunks
 * and begin anywhere; packets are found again after loss or garbage. Memory is bounded by one segment.
 */
export class TsSegmenter {
  readonly #targetTicks: number;
  /** The same for the present segment. */
  #dueTicks: number;
  readonly #maxBytes: number;
  readonly #aligner = new PacketAligner();
  readonly #tables = new TableReader();
  readonly #buffer = new PacketBuffer();
  /** The programme of the buffered packets, and the one in the most recent tables. */
  #programme: Programme | undefined;
  #next: Programme | undefined;
  /** Start of the current segment, always at offset 0 of the buffer; undefined before the first segment. */
  #start: Boundary | undefined;
  /** End of the current segment; undefined until it is found. */
  #end: Boundary | undefined;
  #scanAt = 0;
  #ticks = 0;
  #lastDts: number | undefined;
  #frameTicks = TICKS_PER_SECOND / 25;
  #hasJumped = false;
  #isOver = false;
  /** Bytes of packets before the tables and the first key frame. */
  #unusedBytes = 0;

  constructor(options: TsSegmenterOptions = {}) {
    this.#targetTicks = (options.targetSeconds ?? 6) * TICKS_PER_SECOND;
    this.#dueTicks =
      options.firstSeconds === undefined ? this.#targetTicks : options.firstSeconds * TICKS_PER_SECOND;
    this.#maxBytes = options.maxSegmentBytes ?? 32 * 1024 * 1024;
  }

  /** Adds bytes and returns the segments that became complete. */
  push(bytes: Uint8Array): TsSegment[] {
    const done: TsSegment[] = [];
    for (let at = 0; at < bytes.length; at += SLICE_BYTES)
      this.#acceptPackets(this.#aligner.push(bytes.subarray(at, at + SLICE_BYTES)), done);
    return done;
  }

  /**
   * Ends the stream and returns the last segments. Throws `SluiceError("unsupported_container")` if no programme was found.
   */
  flush(): TsSegment[] {
    const done: TsSegment[] = [];
    this.#isOver = true;
    this.#acceptPackets(this.#aligner.finish(), done);
    if (!this.#programme)
      throw new SluiceError("unsupported_container", "the stream has no MPEG-TS programme");
    if (this.#start && this.#buffer.length > 0) done.push(this.#cut(this.#boundaryAt(this.#buffer.length)));
    return done;
  }

  /** Splits the packets at tables, so that a change of programme takes effect where it occurs. */
  #acceptPackets(packets: Uint8Array, done: TsSegment[]): void {
    let from = 0;
    for (let at = 0; at < packets.length; at += TS_PACKET_BYTES) {
      if (!this.#tables.wants(pidAt(packets, at)) || !this.#tables.push(packets, at)) continue;
      this.#bufferPackets(packets.subarray(from, at), done);
      from = at;
      this.#updateProgramme();
    }
    this.#bufferPackets(packets.subarray(from), done);
  }

  #updateProgramme(): void {
    const tables = this.#tables.tables(this.#unusedBytes >= TABLE_WAIT_BYTES);
    if (!tables) return;
    const streams = streamsOf(tables.pmt);
    const leading = leadingStream(streams);
    if (!leading) return;
    this.#next = { tables, streams, leading };
    this.#programme ??= this.#next;
  }

  #bufferPackets(packets: Uint8Array, done: TsSegment[]): void {
    let from = 0;
    if (!this.#programme) {
      from = Math.min(packets.length, Math.max(0, TABLE_WAIT_BYTES - this.#unusedBytes));
      this.#unusedBytes += from;
      if (this.#unusedBytes >= TABLE_WAIT_BYTES) this.#updateProgramme();
    }
    if (!this.#programme) {
      this.#unusedBytes += packets.length - from;
      return;
    }
    this.#buffer.push(packets.subarray(from));
    while (this.#advance(done));
  }

  /** Processes the next unit in the buffer; returns false if more bytes are needed. */
  #advance(done: TsSegment[]): boolean {
    if (this.#end) return this.#finishSegment(this.#end, done);
    const leading = (this.#next ?? this.#programme!).leading;
    const packets = this.#buffer.packets;
    const unit = nextUnit(packets, this.#scanAt, leading);
    if (!unit) {
      this.#scanAt = packets.length;
      return this.#cutAtLimit();
    }
    if (unit.isKey === undefined && !this.#isOver) {
      this.#scanAt = unit.at;
      return this.#cutAtLimit();
    }
    this.#scanAt = unit.at + TS_PACKET_BYTES;
    this.#handleUnit(unit);
    return true;
  }

  /** Starts or ends a segment at a unit of the leading stream if it is due. */
  #handleUnit(unit: TsUnit): void {
    this.#advanceClock(unit.dts);
    const isKey = unit.isKey === true;
    const boundary = { ...this.#boundaryAt(unit.at), dts: unit.dts, isKey };
    if (!this.#start) {
      if (!isKey && unit.at < this.#maxBytes / 4) return;
      this.#unusedBytes += unit.at;
      this.#buffer.drop(unit.at);
      this.#scanAt -= unit.at;
      this.#begin({ ...boundary, at: 0, isDiscontinuous: false });
      return;
    }
    const ticks = this.#ticks - this.#start.ticks;
    const isDue =
      ticks >= this.#dueTicks - this.#frameTicks / 2 || this.#hasJumped || this.#next !== this.#programme;
    const isOverLimit = ticks >= MAX_TARGETS_WITHOUT_KEY * this.#targetTicks || unit.at >= this.#maxBytes;
    if ((isDue && isKey) || isOverLimit) this.#end = boundary;
  }

  /** Advances the clock to `dts`, or by one frame at a discontinuity. */
  #advanceClock(dts: number): void {
    const step = this.#lastDts === undefined ? 0 : deltaTicks(dts, this.#lastDts);
    this.#lastDts = dts;
    if (step > 0 && step <= MAX_STEP_TICKS) {
      this.#frameTicks = step;
      this.#ticks += step;
      return;
    }
    if (step < -MAX_BACK_TICKS || step > MAX_STEP_TICKS) this.#hasJumped = true;
    if (step !== 0) this.#ticks += this.#frameTicks;
  }

  /** Completes the segment before `end` once the rest of its audio units has arrived; returns false until then. */
  #finishSegment(end: Boundary, done: TsSegment[]): boolean {
    const packets = this.#buffer.packets;
    const { streams, leading } = this.#programme!;
    let after = packets.subarray(end.at);
    if (!this.#isOver && !hasAllStarts({ streams, leading }, after)) {
      const waitEnd = this.#audioWaitEnd(packets, end);
      if (waitEnd === undefined) return false;
      after = packets.subarray(end.at, waitEnd);
    }
    done.push(this.#cut(end, end.at + after.length));
    this.#dueTicks = this.#targetTicks;
    this.#begin({ ...end, at: 0 });
    return true;
  }

  /** The offset where waiting for audio ends: half a second or `STRADDLE_BYTES` after the boundary; undefined before that. */
  #audioWaitEnd(packets: Uint8Array, end: Boundary): number | undefined {
    const leading = (this.#next ?? this.#programme!).leading;
    for (
      let unit = nextUnit(packets, end.at, leading);
      unit;
      unit = nextUnit(packets, unit.at + TS_PACKET_BYTES, leading)
    ) {
      if (Math.abs(deltaTicks(unit.dts, end.dts)) >= STRADDLE_TICKS) return unit.at;
    }
    return packets.length - end.at >= STRADDLE_BYTES ? end.at + STRADDLE_BYTES : undefined;
  }

  /** Cuts at the size limit if there is no unit to cut at. Returns true if it set the end of a segment. */
  #cutAtLimit(): boolean {
    const limit = Math.floor(this.#maxBytes / TS_PACKET_BYTES) * TS_PACKET_BYTES;
    if (this.#buffer.length < limit + STRADDLE_BYTES) return false;
    if (this.#start) {
      this.#end = this.#boundaryAt(limit);
      return true;
    }
    this.#unusedBytes += limit;
    this.#buffer.drop(limit);
    this.#scanAt = Math.max(0, this.#scanAt - limit);
    return false;
  }

  #begin(boundary: Boundary): void {
    this.#start = boundary;
    this.#end = undefined;
    this.#hasJumped = false;
    this.#programme = this.#next ?? this.#programme;
  }

  #boundaryAt(at: number): Boundary {
    const isDiscontinuous = this.#hasJumped || this.#hasOtherStreams();
    return { at, dts: this.#lastDts ?? 0, ticks: this.#ticks, isKey: false, isDiscontinuous };
  }

  #hasOtherStreams(): boolean {
    if (this.#next === this.#programme) return false;
    return JSON.stringify(this.#next?.streams) !== JSON.stringify(this.#programme?.streams);
  }

  /** Cuts the segment before `end`; the packets up to offset `usedEnd` hold the rest of its audio units. */
  #cut(end: Boundary, usedEnd = end.at): TsSegment {
    const start = this.#start!;
    const isLast = end.at === this.#buffer.length;
    const ticks = Math.max(0, end.ticks - start.ticks + (isLast ? this.#frameTicks : 0));
    const seconds = ticks / TICKS_PER_SECOND;
    const { tables, streams, leading } = this.#programme!;
    const cut = { tables, streams, leading, bodyBytes: end.at, isFirst: false, seconds };
    const bytes = cutSegment(cut, this.#buffer.packets.subarray(0, usedEnd));
    this.#buffer.drop(end.at);
    this.#scanAt = Math.max(0, this.#scanAt - end.at);
    return {
      bytes,
      startSeconds: start.ticks / TICKS_PER_SECOND,
      durationSeconds: seconds,
      firstDts: start.dts,
      isDiscontinuous: start.isDiscontinuous,
      isKey: start.isKey,
    };
  }
}

/** A growing byte queue in contiguous memory. Its owner limits the size. */
class PacketBuffer {
  #bytes = new Uint8Array(64 * 1024);
  length = 0;

  /** All buffered bytes: a view, valid until the next `push` or `drop`. */
  get packets(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }

  push(packets: Uint8Array): void {
    if (this.length + packets.length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.length + packets.length));
      larger.set(this.packets);
      this.#bytes = larger;
    }
    this.#bytes.set(packets, this.length);
    this.length += packets.length;
  }

  /** Removes the first `count` bytes. */
  drop(count: number): void {
    this.#bytes.copyWithin(0, count, this.length);
    this.length -= count;
  }
}
