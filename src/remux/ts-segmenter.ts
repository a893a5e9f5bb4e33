import { SluiceError } from "../base/errors.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import { pidAt, TS_PACKET_BYTES } from "../media/ts-packet.ts";
import { leadingStream, streamsOf, type TsStream } from "../media/ts-programme.ts";
import { alignPackets, detectLayout } from "../media/ts-sync.ts";
import { TableReader, type TsTables } from "../media/ts-tables.ts";
import { nextUnit, type TsUnit } from "../media/ts-units.ts";
import { PacketBuffer } from "./packet-buffer.ts";
import { cutSegment, hasAllStarts, STRADDLE_BYTES } from "./ts-cut.ts";

/** One piece of a transport stream that can be played by itself: PAT and PMT first. */
export interface TsSegment {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Time from the first segment on, jumps of the clock bridged. */
  readonly startSeconds: number;
  readonly durationSeconds: number;
  /** DTS of its first unit as the stream says it: 33 bits, 90 kHz. */
  readonly firstDts: number;
  /** The clock, the tracks or the data jump between the segment before and this one (RFC 8216 4.3.2.3). */
  readonly isDiscontinuous: boolean;
  /** It begins with a keyframe; false after a hard cut. */
  readonly isKey: boolean;
}

export interface TsSegmenterOptions {
  /** A segment ends at the first keyframe after so many seconds (default 6). */
  readonly targetSeconds?: number;
  /** No segment gets longer than this, keyframe or not (default 32 MiB: 6 s of 40 Mbit/s). */
  readonly maxSegmentBytes?: number;
}

interface Programme {
  readonly tables: TsTables;
  readonly streams: readonly TsStream[];
  readonly leading: TsStream;
}

/** A place in the buffer where a segment begins, and what is known of it. */
interface Border {
  /** In the buffer; moves as bytes before it go. */
  readonly at: number;
  readonly dts: number;
  readonly ticks: number;
  readonly isKey: boolean;
  readonly isDiscontinuous: boolean;
}

/** Bytes are taken in so many at a time, so that a huge chunk does not grow the buffer. */
const SLICE_BYTES = 256 * 1024;
/** So much is held to find out how packets lie; without five of them in a row by then the oldest bytes go. */
const MAX_UNSURE_BYTES = 64 * 1024;
/** The PAT may list programmes that were left out of the stream: so long is waited for their tables (whole packets). */
const TABLE_PATIENCE_BYTES = 4096 * TS_PACKET_BYTES;
const MAX_TARGETS_WITHOUT_KEY = 4;
/** Steps of the decode clock outside these are jumps, not time that passed. */
const MAX_BACK_TICKS = 0.1 * TICKS_PER_SECOND;
const MAX_STEP_TICKS = 3 * TICKS_PER_SECOND;
/** So long after a border the rest of a straddling audio unit is waited for. */
const STRADDLE_TICKS = 0.5 * TICKS_PER_SECOND;

/**
 * Cuts a transport stream into segments at keyframes (by time for audio alone) without remuxing. Bytes may come in any chunks, from any
 * point on; it finds the packets again after loss or garbage. Memory is bounded by one segment.
 */
export class TsSegmenter {
  readonly #targetTicks: number;
  readonly #maxBytes: number;
  readonly #tables = new TableReader();
  readonly #buffer = new PacketBuffer();
  #raw: Uint8Array = new Uint8Array(0);
  #stride: number | undefined;
  #isSynced = false;
  /** The programme that the buffered packets belong to, and the one announced since. */
  #programme: Programme | undefined;
  #next: Programme | undefined;
  /** Where the segment under way begins: at 0 of the buffer, once there is one. */
  #start: Border | undefined;
  /** Where it ends, once found. */
  #end: Border | undefined;
  #scanAt = 0;
  #ticks = 0;
  #lastDts: number | undefined;
  #frameTicks = TICKS_PER_SECOND / 25;
  #hasJumped = false;
  #isOver = false;
  /** Bytes that were no packets, or came before the first keyframe. */
  skippedBytes = 0;

  constructor(options: TsSegmenterOptions = {}) {
    this.#targetTicks = (options.targetSeconds ?? 6) * TICKS_PER_SECOND;
    this.#maxBytes = options.maxSegmentBytes ?? 32 * 1024 * 1024;
  }

  /** Takes bytes and gives the segments that are complete now. */
  push(bytes: Uint8Array): TsSegment[] {
    const done: TsSegment[] = [];
    for (let at = 0; at < bytes.length; at += SLICE_BYTES)
      this.#take(bytes.subarray(at, at + SLICE_BYTES), done);
    return done;
  }

  /**
   * No more bytes will come: gives what is left. Throws `SluiceError("unsupported_container")` where no programme was ever found.
   */
  flush(): TsSegment[] {
    const done: TsSegment[] = [];
    this.#isOver = true;
    this.#take(new Uint8Array(0), done);
    if (!this.#programme)
      throw new SluiceError("unsupported_container", "no MPEG-TS programme in the stream");
    if (this.#start && this.#buffer.length > 0) done.push(this.#cut(this.#borderAt(this.#buffer.length)));
    return done;
  }

  #take(bytes: Uint8Array, done: TsSegment[]): void {
    this.#raw = this.#raw.length === 0 ? bytes.slice() : joined(this.#raw, bytes);
    this.#stride ??= this.#findStride();
    if (this.#stride === undefined) return;
    const aligned = alignPackets(this.#raw, this.#stride, this.#isSynced, this.#isOver);
    this.#raw = this.#raw.subarray(aligned.used);
    this.#isSynced = aligned.isSynced;
    this.skippedBytes += aligned.skipped;
    this.#accept(aligned.packets, done);
  }

  #findStride(): number | undefined {
    const layout = detectLayout(this.#raw);
    if (!layout && this.#raw.length > MAX_UNSURE_BYTES) {
      const rest = this.#raw.subarray(this.#raw.length - MAX_UNSURE_BYTES / 2);
      this.skippedBytes += this.#raw.length - rest.length;
      this.#raw = rest.slice();
    }
    return layout?.stride;
  }

  /** Packets go to the buffer one table at a time: a change of programme must be seen where it happens. */
  #accept(packets: Uint8Array, done: TsSegment[]): void {
    let from = 0;
    for (let at = 0; at < packets.length; at += TS_PACKET_BYTES) {
      if (!this.#tables.wants(pidAt(packets, at)) || !this.#tables.push(packets, at)) continue;
      this.#keep(packets.subarray(from, at), done);
      from = at;
      this.#learn();
    }
    this.#keep(packets.subarray(from), done);
  }

  #learn(): void {
    const tables = this.#tables.tables(this.skippedBytes >= TABLE_PATIENCE_BYTES);
    if (!tables) return;
    const streams = streamsOf(tables.pmt);
    const leading = leadingStream(streams);
    if (!leading) return;
    this.#next = { tables, streams, leading };
    this.#programme ??= this.#next;
  }

  #keep(packets: Uint8Array, done: TsSegment[]): void {
    let from = 0;
    if (!this.#programme) {
      from = Math.min(packets.length, Math.max(0, TABLE_PATIENCE_BYTES - this.skippedBytes));
      this.skippedBytes += from;
      if (this.skippedBytes >= TABLE_PATIENCE_BYTES) this.#learn();
    }
    if (!this.#programme) {
      this.skippedBytes += packets.length - from;
      return;
    }
    this.#buffer.push(packets.subarray(from));
    while (this.#advance(done));
  }

  /** Does the next thing that the buffer allows; false where more bytes are needed. */
  #advance(done: TsSegment[]): boolean {
    if (this.#end) return this.#release(this.#end, done);
    const leading = (this.#next ?? this.#programme!).leading;
    const packets = this.#buffer.packets;
    const unit = nextUnit(packets, this.#scanAt, leading);
    if (!unit) {
      this.#scanAt = packets.length;
      return this.#cutBlind();
    }
    if (unit.isKey === undefined && !this.#isOver) {
      this.#scanAt = unit.at;
      return this.#cutBlind();
    }
    this.#scanAt = unit.at + TS_PACKET_BYTES;
    this.#meet(unit);
    return true;
  }

  /** Decides what a unit of the leading stream means. */
  #meet(unit: TsUnit): void {
    this.#tell(unit.dts);
    const isKey = unit.isKey === true;
    const border = { ...this.#borderAt(unit.at), dts: unit.dts, isKey };
    if (!this.#start) {
      if (!isKey && unit.at < this.#maxBytes / 4) return;
      this.skippedBytes += unit.at;
      this.#buffer.drop(unit.at);
      this.#scanAt -= unit.at;
      this.#begin({ ...border, at: 0, isDiscontinuous: false });
      return;
    }
    const ticks = this.#ticks - this.#start.ticks;
    const isDue =
      ticks >= this.#targetTicks - this.#frameTicks / 2 || this.#hasJumped || this.#next !== this.#programme;
    const isHard = ticks >= MAX_TARGETS_WITHOUT_KEY * this.#targetTicks || unit.at >= this.#maxBytes;
    if ((isDue && isKey) || isHard) this.#end = border;
  }

  /** Lets the clock run on to `dts`; a jump lets it stand still by one frame. */
  #tell(dts: number): void {
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

  /** Gives the segment before `end` away as soon as the rest of its audio units is there. */
  #release(end: Border, done: TsSegment[]): boolean {
    const packets = this.#buffer.packets;
    const { streams, leading } = this.#programme!;
    let after = packets.subarray(end.at);
    if (!this.#isOver && !hasAllStarts({ streams, leading }, after)) {
      const late = this.#lateUnit(packets, end);
      if (late === undefined) return false;
      after = packets.subarray(end.at, late);
    }
    done.push(this.#cut(end, after));
    this.#begin({ ...end, at: 0 });
    return true;
  }

  /** Where waiting for audio ends: half a second or the straddling window after the border. */
  #lateUnit(packets: Uint8Array, end: Border): number | undefined {
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

  /** Without any unit to cut at, memory decides. */
  #cutBlind(): boolean {
    const limit = Math.floor(this.#maxBytes / TS_PACKET_BYTES) * TS_PACKET_BYTES;
    if (this.#buffer.length < limit + STRADDLE_BYTES) return false;
    if (this.#start) {
      this.#end = this.#borderAt(limit);
      return true;
    }
    this.skippedBytes += limit;
    this.#buffer.drop(limit);
    this.#scanAt = Math.max(0, this.#scanAt - limit);
    return false;
  }

  #begin(border: Border): void {
    this.#start = border;
    this.#end = undefined;
    this.#hasJumped = false;
    this.#programme = this.#next ?? this.#programme;
  }

  #borderAt(at: number): Border {
    const isDiscontinuous = this.#hasJumped || this.#hasOtherStreams();
    return { at, dts: this.#lastDts ?? 0, ticks: this.#ticks, isKey: false, isDiscontinuous };
  }

  #hasOtherStreams(): boolean {
    if (this.#next === this.#programme) return false;
    return JSON.stringify(this.#next?.streams) !== JSON.stringify(this.#programme?.streams);
  }

  #cut(end: Border, after: Uint8Array = new Uint8Array(0)): TsSegment {
    const start = this.#start!;
    const isLast = end.at === this.#buffer.length;
    const ticks = Math.max(0, end.ticks - start.ticks + (isLast ? this.#frameTicks : 0));
    const seconds = ticks / TICKS_PER_SECOND;
    const body = this.#buffer.packets.subarray(0, end.at);
    const { tables, streams, leading } = this.#programme!;
    const bytes = cutSegment({ tables, streams, leading, body, after, isFirst: false, seconds });
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

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
