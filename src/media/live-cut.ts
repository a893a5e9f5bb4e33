import { type LivePiece, OpenPiece } from "./live-piece.ts";
import { LiveRate } from "./live-rate.ts";
import { LiveSegments } from "./live-segments.ts";
import { LiveTables } from "./live-tables.ts";
import { PAT_PID } from "./psi.ts";
import type { SegmentGrid } from "./segment-grid.ts";
import { deltaTicks, TICKS_PER_SECOND } from "./timestamps.ts";
import { clockReferenceAt } from "./ts-clock.ts";
import { isUnitStartAt, NULL_PID, pidAt, TS_PACKET_BYTES } from "./ts-packet.ts";
import { nextUnit, type TsUnit } from "./ts-units.ts";

/** Options of {@link PieceCutter}. */
export interface PieceCutterOptions {
  /** A piece is closed after this time (see `pieceMsFor`). */
  readonly pieceMs: number;
  /** Size limit of a piece. */
  readonly maxPieceBytes: number;
  /** Minimum duration of an HLS segment. */
  readonly segmentMs: number;
  /** Number of the first segment: after a restart, the last number before it plus one. If absent, computed from the time. */
  readonly firstSegment?: number;
  /** Segments that are common with other streams. */
  readonly grid?: SegmentGrid;
}

/** Interval of empty pieces while the source is silent, which show viewers that the broadcast continues. */
const SILENT_PIECE_MS = 1000;
/** Limit of bytes held back until it is known whether a unit is a key frame: 8 KiB of video, plus other packets between. */
const MAX_PENDING_BYTES = 64 * 1024;
/** Interval of random access points in a stream without video, where every unit could be one. */
const AUDIO_ACCESS_MS = 500;
/** Steps of the PCR outside these limits, relative to the elapsed time, are discontinuities. */
const MAX_BACK_TICKS = 0.1 * TICKS_PER_SECOND;
const MAX_AHEAD_TICKS = 3 * TICKS_PER_SECOND;

/**
 * Cuts a transport stream into pieces by arrival time. Packets pass unchanged, with three exceptions: null packets are dropped; PAT and PMT
 * are inserted before a key frame unless the source has just sent them, so that playback can start there; and the continuity counters
 * of PAT and PMT are renumbered. Nothing is remuxed, and no packet is split. Times are UNIX milliseconds and never decrease.
 */
export class PieceCutter {
  readonly #options: PieceCutterOptions;
  readonly #tables = new LiveTables();
  readonly #rate = new LiveRate();
  readonly #segments: LiveSegments;
  #open: OpenPiece | undefined;
  #closed: LivePiece[] = [];
  /** A unit of the leading stream that may be a key frame, and all later packets. */
  #pending = new Uint8Array(0);
  #pendingSinceMs = 0;
  /** Offsets in the open piece of tables received since the last unit of the leading stream. */
  #patAt: number | undefined;
  #pmtAt: number | undefined;
  /** The last continuity counters of PAT and PMT, as written and as received. */
  readonly #writtenCounters = new Map<number, number>();
  readonly #sourceCounters = new Map<number, number>();
  #clock: { readonly ticks: number; readonly atMs: number } | undefined;
  #bytesSinceClock = 0;
  #lastAccessMs = Number.NEGATIVE_INFINITY;

  constructor(options: PieceCutterOptions) {
    this.#options = options;
    this.#segments = new LiveSegments(options.segmentMs, options.firstSegment, options.grid);
  }

  /** The bit rate by the PCR of the stream; undefined during its first second. */
  get bytesPerSecond(): number | undefined {
    return this.#rate.bytesPerSecond;
  }

  /** Adds whole packets received at `nowMs`, and returns the completed pieces. */
  push(packets: Uint8Array, nowMs: number): LivePiece[] {
    this.#open ??= new OpenPiece(nowMs);
    this.#expire(nowMs);
    for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES)
      this.#handlePacket(packets, at, nowMs);
    return this.#takeClosed();
  }

  /** Closes pieces that are due by time, and returns them. */
  wake(nowMs: number): LivePiece[] {
    this.#expire(nowMs);
    return this.#takeClosed();
  }

  /** When to call `wake` next, in UNIX milliseconds; undefined before the first packet. */
  nextWakeMs(): number | undefined {
    if (!this.#open) return undefined;
    const { pieceMs } = this.#options;
    const closeMs = this.#open.openedAtMs + (this.#open.length > 0 ? pieceMs : SILENT_PIECE_MS);
    return this.#pending.length > 0 ? Math.min(this.#pendingSinceMs + pieceMs, closeMs) : closeMs;
  }

  /** Marks a discontinuity: the source was lost, and the next packets do not continue the stream. */
  break(nowMs: number): LivePiece[] {
    this.#break(nowMs);
    this.#clock = undefined;
    return this.#takeClosed();
  }

  /** Ends the stream and returns the last pieces. */
  finish(nowMs: number): LivePiece[] {
    this.#flushPending(false, undefined, nowMs);
    if (this.#open && this.#open.length > 0) this.#close(nowMs);
    return this.#takeClosed();
  }

  #takeClosed(): LivePiece[] {
    const closed = this.#closed;
    this.#closed = [];
    return closed;
  }

  #expire(nowMs: number): void {
    const open = this.#open;
    if (!open) return;
    const { pieceMs } = this.#options;
    if (this.#pending.length > 0 && nowMs >= this.#pendingSinceMs + pieceMs)
      this.#flushPending(false, undefined, nowMs);
    const limitMs = open.length > 0 ? pieceMs : SILENT_PIECE_MS;
    if (nowMs >= open.openedAtMs + limitMs) this.#close(nowMs);
  }

  #handlePacket(packets: Uint8Array, at: number, nowMs: number): void {
    const pid = pidAt(packets, at);
    if (pid === NULL_PID) return;
    const before = this.#tables.programme;
    if (this.#tables.push(packets, at) && before) {
      if (this.#tables.programme!.streamsText !== before.streamsText) this.#break(nowMs);
    }
    if (pid === this.#tables.programme?.clockPid) this.#readClock(packets, at, nowMs);
    this.#bytesSinceClock += TS_PACKET_BYTES;
    const leading = this.#tables.programme?.leading;
    if (leading?.pid === pid && isUnitStartAt(packets, at)) {
      this.#classifyPending(true, nowMs);
      this.#pendingSinceMs = nowMs;
      this.#appendPending(packets, at);
      this.#classifyPending(false, nowMs);
    } else if (this.#pending.length > 0) {
      this.#appendPending(packets, at);
      if (leading?.pid === pid || this.#pending.length >= MAX_PENDING_BYTES)
        this.#classifyPending(false, nowMs);
    } else {
      this.#add(packets, at, nowMs);
    }
  }

  #appendPending(packets: Uint8Array, at: number): void {
    const pending = new Uint8Array(this.#pending.length + TS_PACKET_BYTES);
    pending.set(this.#pending);
    pending.set(packets.subarray(at, at + TS_PACKET_BYTES), this.#pending.length);
    this.#pending = pending;
  }

  /** Releases the pending packets once it is known whether they begin with a key frame; `isWhole`: the unit has ended. */
  #classifyPending(isWhole: boolean, nowMs: number): void {
    const leading = this.#tables.programme?.leading;
    if (this.#pending.length === 0) return;
    const unit = leading && nextUnit(this.#pending, 0, leading);
    if (unit?.at !== 0) {
      this.#flushPending(false, undefined, nowMs);
      return;
    }
    if (unit.isKey === undefined && !isWhole && this.#pending.length < MAX_PENDING_BYTES) return;
    this.#flushPending(unit.isKey === true, unit, nowMs);
  }

  #flushPending(isKey: boolean, unit: TsUnit | undefined, nowMs: number): void {
    const pending = this.#pending;
    if (pending.length === 0) return;
    this.#pending = new Uint8Array(0);
    const isSegmentStart = unit !== undefined && this.#segments.addUnit(unit, isKey, nowMs);
    if (isKey) this.#markRandomAccess(isSegmentStart, nowMs);
    this.#patAt = undefined;
    this.#pmtAt = undefined;
    for (let at = 0; at < pending.length; at += TS_PACKET_BYTES) this.#add(pending, at, nowMs);
  }

  /** Marks a random access point, because the packet to be added next begins a key frame. */
  #markRandomAccess(isSegmentStart: boolean, nowMs: number): void {
    const { leading, packets } = this.#tables.programme!;
    const isDue = leading.kind === "video" || nowMs - this.#lastAccessMs >= AUDIO_ACCESS_MS;
    if (!isSegmentStart && !isDue) return;
    // The tables and the first packet of the key frame belong to the same piece.
    this.#makeRoom(packets.length + TS_PACKET_BYTES, nowMs);
    const open = this.#open!;
    let offset = this.#patAt;
    if (offset === undefined || this.#pmtAt === undefined || this.#pmtAt < offset) {
      offset = open.length;
      for (let at = 0; at < packets.length; at += TS_PACKET_BYTES) this.#write(packets, at, nowMs, false);
    }
    this.#lastAccessMs = nowMs;
    if (open.randomAccessOffset !== undefined && !isSegmentStart) return;
    open.randomAccessOffset = offset;
    open.isSegmentStart ||= isSegmentStart;
  }

  #add(packets: Uint8Array, at: number, nowMs: number): void {
    this.#makeRoom(TS_PACKET_BYTES, nowMs);
    const pid = pidAt(packets, at);
    const isTable = pid === PAT_PID || pid === this.#tables.programme?.pmtPid;
    if (!isTable) {
      this.#open!.add(packets, at, nowMs);
      if (pid === this.#tables.programme?.clockPid)
        this.#open!.clockReference ??= clockReferenceAt(packets, at);
      return;
    }
    const start = this.#write(packets, at, nowMs, true);
    if (!isUnitStartAt(packets, at)) return;
    if (pid === PAT_PID) this.#patAt = start;
    else this.#pmtAt = start;
  }

  /** Writes a table packet and renumbers it. Gaps in the counters of the source are kept. */
  #write(packets: Uint8Array, at: number, nowMs: number, isSource: boolean): number {
    const pid = pidAt(packets, at);
    const start = this.#open!.add(packets, at, nowMs);
    const received = packets[at + 3]! & 15;
    const last = this.#writtenCounters.get(pid);
    const step =
      isSource && this.#sourceCounters.has(pid) ? (received - this.#sourceCounters.get(pid)!) & 15 : 1;
    const counter = last === undefined ? received : (last + step) & 15;
    this.#writtenCounters.set(pid, counter);
    if (isSource) this.#sourceCounters.set(pid, received);
    this.#open!.renumber(start, counter);
    return start;
  }

  #makeRoom(bytes: number, nowMs: number): void {
    if (this.#open!.length + bytes > this.#options.maxPieceBytes) this.#close(nowMs);
  }

  #close(nowMs: number): void {
    this.#closed.push(this.#open!.close(nowMs, this.#segments.numberAt(nowMs)));
    this.#patAt = undefined;
    this.#pmtAt = undefined;
  }

  #break(nowMs: number): void {
    if (!this.#open) return;
    this.#flushPending(false, undefined, nowMs);
    if (this.#open.length > 0) this.#close(nowMs);
    this.#open.isDiscontinuity = true;
    this.#sourceCounters.clear();
    this.#segments.break();
  }

  #readClock(packets: Uint8Array, at: number, nowMs: number): void {
    const reference = clockReferenceAt(packets, at);
    if (reference === undefined) return;
    const ticks = Math.floor(reference / 300);
    const last = this.#clock;
    if (last) {
      const step = deltaTicks(ticks, last.ticks);
      const passed = ((nowMs - last.atMs) * TICKS_PER_SECOND) / 1000;
      if (step < -MAX_BACK_TICKS || step - Math.max(0, passed) > MAX_AHEAD_TICKS) this.#break(nowMs);
      else if (step > 0) this.#rate.add(step, this.#bytesSinceClock);
    }
    this.#bytesSinceClock = 0;
    this.#clock = { ticks, atMs: nowMs };
  }
}
