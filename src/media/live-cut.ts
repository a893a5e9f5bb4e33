import { type LivePiece, OpenPiece } from "./live-piece.ts";
import { LiveRate } from "./live-rate.ts";
import { LiveSegments } from "./live-segments.ts";
import { LiveTables } from "./live-tables.ts";
import { PAT_PID } from "./psi.ts";
import { deltaTicks, TICKS_PER_SECOND } from "./timestamps.ts";
import { clockReferenceAt } from "./ts-clock.ts";
import { isUnitStartAt, NULL_PID, pidAt, TS_PACKET_BYTES } from "./ts-packet.ts";
import { nextUnit } from "./ts-units.ts";

/** How a stream is cut. */
export interface PieceCutterOptions {
  /** A piece is closed after so long (see `pieceMsFor`). */
  readonly pieceMs: number;
  /** No piece is larger. */
  readonly maxPieceBytes: number;
  /** The least duration of a segment of HLS. */
  readonly segmentMs: number;
  /** The number of the first segment: what a source that was started again had before, plus one. By the clock where absent. */
  readonly firstSegment?: number;
}

/** A source that brings nothing still makes a piece so often: viewers see that it lives. */
const SILENT_PIECE_MS = 1000;
/** So much is held back at most until it is known whether a keyframe begins: 8 KiB of video, and what is sent between. */
const MAX_HELD_BYTES = 64 * 1024;
/** Sound alone: a player may begin so often, though it could with every unit. */
const SOUND_ACCESS_MS = 500;
/** Steps of the programme clock outside these, beyond the time that passed, are jumps. */
const MAX_BACK_TICKS = 0.1 * TICKS_PER_SECOND;
const MAX_AHEAD_TICKS = 3 * TICKS_PER_SECOND;

/**
 * Cuts a transport stream into pieces by the time at which it comes. Packets pass as they are, but: stuffing (null packets) is left out; PAT
 * and PMT are put before a keyframe where the source has not just sent them, so that a player may begin there; and the continuity
 * counters of those two follow on. Nothing is remuxed, no packet is split. Times are UNIX ms and never go backwards.
 */
export class PieceCutter {
  readonly #options: PieceCutterOptions;
  readonly #tables = new LiveTables();
  readonly #rate = new LiveRate();
  readonly #segments: LiveSegments;
  #open: OpenPiece | undefined;
  #closed: LivePiece[] = [];
  /** A unit of the leading stream that may be a keyframe, with all that came since. */
  #held = new Uint8Array(0);
  #heldAtMs = 0;
  /** Where in the open piece the tables stand that came since the last unit of the leading stream. */
  #patAt: number | undefined;
  #pmtAt: number | undefined;
  /** The counters of PAT and PMT as they are written, and as they came. */
  readonly #written = new Map<number, number>();
  readonly #came = new Map<number, number>();
  #clock: { readonly ticks: number; readonly atMs: number } | undefined;
  #bytesSinceClock = 0;
  #accessAtMs = Number.NEGATIVE_INFINITY;
  /** Packets of stuffing that were left out. */
  stuffingPackets = 0;

  constructor(options: PieceCutterOptions) {
    this.#options = options;
    this.#segments = new LiveSegments(options.segmentMs, options.firstSegment);
  }

  /** The rate of the stream by its own clock; undefined before its first second. */
  get bytesPerSecond(): number | undefined {
    return this.#rate.bytesPerSecond;
  }

  /** Takes whole packets that came at `nowMs`, and gives the pieces that are complete. */
  push(packets: Uint8Array, nowMs: number): LivePiece[] {
    this.#open ??= new OpenPiece(nowMs);
    this.#expire(nowMs);
    for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES)
      this.#take(packets, at, nowMs);
    return this.#given();
  }

  /** Does what is due by time alone. */
  wake(nowMs: number): LivePiece[] {
    this.#expire(nowMs);
    return this.#given();
  }

  /** When `wake` wants to be called, in UNIX ms; undefined before the first packet. */
  nextWakeMs(): number | undefined {
    if (!this.#open) return undefined;
    const { pieceMs } = this.#options;
    const closeMs = this.#open.openedAtMs + (this.#open.length > 0 ? pieceMs : SILENT_PIECE_MS);
    return this.#held.length > 0 ? Math.min(this.#heldAtMs + pieceMs, closeMs) : closeMs;
  }

  /** The source was lost: what comes next does not go on from what came. */
  break(nowMs: number): LivePiece[] {
    this.#break(nowMs);
    this.#clock = undefined;
    return this.#given();
  }

  /** No more will come: gives what is left. */
  finish(nowMs: number): LivePiece[] {
    this.#release(false, undefined, nowMs);
    if (this.#open && this.#open.length > 0) this.#close(nowMs);
    return this.#given();
  }

  #given(): LivePiece[] {
    const given = this.#closed;
    this.#closed = [];
    return given;
  }

  #expire(nowMs: number): void {
    const open = this.#open;
    if (!open) return;
    const { pieceMs } = this.#options;
    if (this.#held.length > 0 && nowMs >= this.#heldAtMs + pieceMs) this.#release(false, undefined, nowMs);
    const limitMs = open.length > 0 ? pieceMs : SILENT_PIECE_MS;
    if (nowMs >= open.openedAtMs + limitMs) this.#close(nowMs);
  }

  #take(packets: Uint8Array, at: number, nowMs: number): void {
    const pid = pidAt(packets, at);
    if (pid === NULL_PID) {
      this.stuffingPackets++;
      return;
    }
    const before = this.#tables.programme;
    if (this.#tables.push(packets, at) && before) {
      if (this.#tables.programme!.streamsText !== before.streamsText) this.#break(nowMs);
    }
    if (pid === this.#tables.programme?.clockPid) this.#readClock(packets, at, nowMs);
    this.#bytesSinceClock += TS_PACKET_BYTES;
    const leading = this.#tables.programme?.leading;
    if (leading?.pid === pid && isUnitStartAt(packets, at)) {
      this.#judge(true, nowMs);
      this.#heldAtMs = nowMs;
      this.#hold(packets, at);
      this.#judge(false, nowMs);
    } else if (this.#held.length > 0) {
      this.#hold(packets, at);
      if (leading?.pid === pid || this.#held.length >= MAX_HELD_BYTES) this.#judge(false, nowMs);
    } else {
      this.#add(packets, at, nowMs);
    }
  }

  #hold(packets: Uint8Array, at: number): void {
    const held = new Uint8Array(this.#held.length + TS_PACKET_BYTES);
    held.set(this.#held);
    held.set(packets.subarray(at, at + TS_PACKET_BYTES), this.#held.length);
    this.#held = held;
  }

  /** Lets what is held go as soon as it is known what it is; `isWhole` where the unit has ended. */
  #judge(isWhole: boolean, nowMs: number): void {
    const leading = this.#tables.programme?.leading;
    if (this.#held.length === 0) return;
    const unit = leading && nextUnit(this.#held, 0, leading);
    if (unit?.at !== 0) {
      this.#release(false, undefined, nowMs);
      return;
    }
    if (unit.isKey === undefined && !isWhole && this.#held.length < MAX_HELD_BYTES) return;
    this.#release(unit.isKey === true, unit.dts, nowMs);
  }

  #release(isKey: boolean, dts: number | undefined, nowMs: number): void {
    const held = this.#held;
    if (held.length === 0) return;
    this.#held = new Uint8Array(0);
    const isSegmentStart = dts !== undefined && this.#segments.meet(dts, isKey, nowMs);
    if (isKey) this.#offerAccess(isSegmentStart, nowMs);
    this.#patAt = undefined;
    this.#pmtAt = undefined;
    for (let at = 0; at < held.length; at += TS_PACKET_BYTES) this.#add(held, at, nowMs);
  }

  /** What is added next begins with a keyframe. */
  #offerAccess(isSegmentStart: boolean, nowMs: number): void {
    const { leading, packets } = this.#tables.programme!;
    const isDue = leading.kind === "video" || nowMs - this.#accessAtMs >= SOUND_ACCESS_MS;
    if (!isSegmentStart && !isDue) return;
    // Tables, keyframe's first packet: all in one piece.
    this.#makeRoom(packets.length + TS_PACKET_BYTES, nowMs);
    const open = this.#open!;
    let offset = this.#patAt;
    if (offset === undefined || this.#pmtAt === undefined || this.#pmtAt < offset) {
      offset = open.length;
      for (let at = 0; at < packets.length; at += TS_PACKET_BYTES) this.#write(packets, at, nowMs, false);
    }
    this.#accessAtMs = nowMs;
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

  /** Writes a packet of a table. The counter of one that comes from the source goes as far as it went there. */
  #write(packets: Uint8Array, at: number, nowMs: number, isSource: boolean): number {
    const pid = pidAt(packets, at);
    const start = this.#open!.add(packets, at, nowMs);
    const came = packets[at + 3]! & 15;
    const last = this.#written.get(pid);
    const step = isSource && this.#came.has(pid) ? (came - this.#came.get(pid)!) & 15 : 1;
    const counter = last === undefined ? came : (last + step) & 15;
    this.#written.set(pid, counter);
    if (isSource) this.#came.set(pid, came);
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
    this.#release(false, undefined, nowMs);
    if (this.#open.length > 0) this.#close(nowMs);
    this.#open.isDiscontinuity = true;
    this.#came.clear();
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
