import { onAbort } from "../../async/abort.ts";
import { concatBytes } from "../../base/bytes.ts";
import { SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Instant } from "../../base/time.ts";
import { TS_PACKET_BYTES } from "../../media/ts-packet.ts";
import type { Clock, Files } from "../../runtime/contract.ts";
import type { PieceHeader } from "../../wire/live/header.ts";
import type { PieceSink } from "../contract.ts";
import { PartCutter } from "./live-window-parts.ts";
import { KeptSegment, type KeptSegmentFacts } from "./live-window-segment.ts";
import { LiveWindowStore } from "./live-window-store.ts";
import {
  type ClockSample,
  decodeTicksAt,
  durationMsOf,
  hasLongSilence,
  isContinuous,
  RecentMaximum,
  timeInPiece,
} from "./live-window-times.ts";

/** What a window depends on, and its limits. */
export interface LiveWindowOptions {
  readonly files: Pick<Files, "open" | "remove">;
  readonly clock: Clock;
  /** A folder for segments that are no longer in memory; undefined for none. */
  readonly folder: string | undefined;
  /** Resolves when no other window uses the folder. */
  readonly free: Promise<void>;
  /** How far back players may seek. */
  readonly limitMs: number;
  /** Returns the disk bytes it may use now, its share of the limit of all streams; 0 for none. */
  readonly limitBytes: () => number;
  /** Limit of the memory (default: 16 MiB). */
  readonly memoryBytes?: number;
  readonly segmentMs: number;
  readonly pieceMs: number;
  readonly log: Log;
}

/** A larger segment is split and not listed: 4 s at 64 Mbit/s. */
const MAX_SEGMENT_BYTES = 32 * 1024 * 1024;
/** A player at the edge does not start before a gap that is longer: it would show that part, and then stall. */
const LONG_GAP_MS = 1_000;
/** Limit of pieces per segment: ten seconds of pieces with few packets. */
const MAX_SEGMENT_PIECES = 8192;

/** A position in the window. */
export interface WindowPlace {
  readonly segment: KeptSegment;
  /** Bytes from the start of the segment. */
  readonly at: number;
}

/** The kept part of a live stream: the latest seconds in memory, the rest on disk, as HLS segments whose boundaries
 * and numbers the source has signed. It does not know its readers; they wait with {@link nextChange}. */
export class LiveWindow implements PieceSink {
  readonly segmentMs: number;
  readonly pieceMs: number;
  readonly #clock: Clock;
  readonly #store: LiveWindowStore;
  readonly #listeners = new Set<() => void>();
  #epoch = -1;
  #nextSeq = 0;
  #last: KeptSegment | undefined;
  #cutter: PartCutter | undefined;
  /** Data is missing: skip pieces until the next random access point. */
  #isWaitingForCut = true;
  /** The missing data may hide a discontinuity: compare the next clock value. */
  #isClockUnverified = false;
  /** A discontinuity follows the last segment. */
  #hasJumped = false;
  #jumps = 0;
  #clockSample: ClockSample | undefined;
  readonly #longestMs = new RecentMaximum();
  #serial = 0;
  #generation = 0;
  #hasEnded = false;
  #isClosed = false;
  #isInterrupted = false;
  #edgeStart: WindowPlace | undefined;
  #lastPieceAt: Instant;

  constructor(options: LiveWindowOptions) {
    this.segmentMs = options.segmentMs;
    this.pieceMs = options.pieceMs;
    this.#clock = options.clock;
    this.#lastPieceAt = options.clock.now();
    this.#store = new LiveWindowStore(options);
  }

  /** The source has ended the stream. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Incremented when segment numbers restart: equal numbers then name different segments. */
  get generation(): number {
    return this.#generation;
  }

  /** The kept segments, oldest first; some may be gone, and the last one may be open. */
  get segments(): readonly KeptSegment[] {
    return this.#store.segments;
  }

  /** The end of the available media, in UNIX ms; undefined before the first piece. */
  get edgeMs(): number | undefined {
    return this.#last?.endMs;
  }

  /** Where the media without a long gap before the edge begins; undefined until such media arrives. */
  get edgeStart(): WindowPlace | undefined {
    return this.#isInterrupted ? undefined : this.#edgeStart;
  }

  /** When the last piece arrived. */
  get lastPieceAt(): Instant {
    return this.#lastPieceAt;
  }

  /** The longest segment of the last one to two hours, in ms; at least the nominal duration. */
  get longestMs(): number {
    return Math.max(this.segmentMs, this.#longestMs.value);
  }

  /** Bytes of media in memory and on disk. */
  get kept(): { readonly memoryBytes: number; readonly diskBytes: number } {
    return this.#store;
  }

  /** Returns the next segment, if there is one. */
  after({ facts }: KeptSegment): KeptSegment | undefined {
    return this.#store.from(facts.serial + 1);
  }

  /** Reads up to `limit` bytes at `at` of a segment. Rejects with `no_such_segment` if it is gone or cannot be read. */
  async read(segment: KeptSegment, at: number, limit: number): Promise<Uint8Array> {
    return this.#store.read(segment, at, limit);
  }

  /** Waits for the next change of the window. `changed` resolves with it, or when `stop` is called; it rejects with
   * the signal's reason, and with `session_stopped` if the window is closed. Afterwards no listener remains. */
  nextChange(signal: AbortSignal): { readonly changed: Promise<void>; stop(): void } {
    let stop = () => {};
    const changed = new Promise<void>((resolve, reject) => {
      signal.throwIfAborted();
      if (this.#isClosed) throw new SluiceError("session_stopped", "the live stream was closed");
      const leave = () => {
        this.#listeners.delete(stop);
        release();
      };
      stop = () => {
        leave();
        resolve();
      };
      this.#listeners.add(stop);
      const release = onAbort(signal, () => {
        leave();
        reject(signal.reason);
      });
    });
    return { changed, stop };
  }

  piece(header: PieceHeader, chunks: readonly Uint8Array[]): void {
    if (this.#isClosed || !this.#isNext(header)) return;
    this.#lastPieceAt = this.#clock.now();
    this.#hasEnded = header.isEnd;
    this.#checkClock(header);
    this.#addPiece(header, wholePackets(chunks));
    if (!this.#isWaitingForCut) this.#isInterrupted = false;
    if (header.isEnd) {
      this.#closeLast(undefined);
      this.#isWaitingForCut = true;
    }
    this.#store.limitMemory();
    this.#notify();
  }

  skip(seq: number): void {
    if (seq >= this.#nextSeq) this.#nextSeq = seq + 1;
    this.#noteLoss();
  }

  /** Reception continues after an interruption: the edge is unknown until the next media arrives. */
  interrupted(): void {
    this.#isInterrupted = !this.#hasEnded;
  }

  restarted(): void {
    this.#noteLoss();
    this.#hasJumped = this.#last !== undefined;
    this.#hasEnded = false;
  }

  /** Drops everything, also on disk. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#notify();
    await this.#store.close();
  }

  /** Whether this piece is new; data missing before it is lost. */
  #isNext({ epoch, seq }: PieceHeader): boolean {
    if (epoch < this.#epoch || (epoch === this.#epoch && seq < this.#nextSeq)) return false;
    if (epoch > this.#epoch) {
      if (this.#epoch >= 0) this.restarted();
    } else if (seq > this.#nextSeq) {
      this.#noteLoss();
    }
    this.#epoch = epoch;
    this.#nextSeq = seq + 1;
    return true;
  }

  #noteLoss(): void {
    if (this.#last && !this.#last.isClosed) this.#last.hasGap = true;
    this.#isWaitingForCut = true;
    this.#isClockUnverified = this.#last !== undefined;
  }

  /** Compares the programme clock with the last value, which shows whether missing data hides a discontinuity. */
  #checkClock({ clockReference, timestampMs }: PieceHeader): void {
    if (clockReference === undefined) return;
    const sample = { reference: clockReference, timestampMs };
    if (this.#isClockUnverified && !isContinuous(this.#clockSample, sample)) this.#hasJumped = true;
    this.#isClockUnverified = false;
    this.#clockSample = sample;
  }

  #addPiece(header: PieceHeader, bytes: Uint8Array): void {
    const { randomAccessOffset = bytes.length, isSegmentStart } = header;
    const cutAt = randomAccessOffset < bytes.length ? randomAccessOffset : undefined;
    if (header.isDiscontinuity) this.#jump(header);
    if (cutAt !== undefined && isSegmentStart) {
      if (!this.#isWaitingForCut) this.#append(header, bytes.subarray(0, cutAt), 0);
      this.#beginSegment(header, bytes, cutAt, true);
    } else if (!this.#isWaitingForCut) {
      this.#append(header, bytes, 0);
    } else if (cutAt !== undefined) {
      this.#resume(header, bytes, cutAt);
    }
  }

  /** The clocks jump at the start of this piece. Bytes before the next random access point belong to no segment. */
  #jump(header: PieceHeader): void {
    const last = this.#last;
    this.#hasJumped = last !== undefined;
    if (!last || last.isClosed) return;
    // A source that was offline has sent nothing meanwhile: the segment is as long as its content.
    last.mediaEnd ??= { at: last.bytes, timeMs: Math.min(last.endMs, timeInPiece(header, 0)) };
    this.#closeParts(last);
  }

  /** Resumes after missing data: in the open segment, or in the rest of another one. */
  #resume(header: PieceHeader, bytes: Uint8Array, at: number): void {
    if (this.#isClockUnverified) this.#hasJumped = true;
    const last = this.#last;
    if (!last || last.isClosed || this.#hasJumped || last.facts.number !== header.segment) {
      this.#beginSegment(header, bytes, at, false);
      return;
    }
    // The start of its next part is not known.
    this.#cutter = undefined;
    last.isCutting = false;
    this.#isWaitingForCut = false;
    this.#noteEdge(last, timeInPiece(header, at) - last.endMs);
    this.#append(header, bytes.subarray(at), at);
  }

  /** The media that follows the end of `segment` comes after a gap of `gapMs`. */
  #noteEdge(segment: KeptSegment, gapMs: number): void {
    if (this.#edgeStart === undefined || gapMs > LONG_GAP_MS)
      this.#edgeStart = { segment, at: segment.bytes };
  }

  #beginSegment(header: PieceHeader, bytes: Uint8Array, at: number, isFromStart: boolean): void {
    const { epoch, segment: number } = header;
    const decodeTicks = decodeTicksAt(bytes, at);
    this.#closeLast(this.#isWaitingForCut || this.#hasJumped ? undefined : decodeTicks);
    let previous = this.#last;
    if (previous && hasLongSilence(previous)) this.#hasJumped = true;
    if (previous && number < previous.facts.number) {
      this.#store.clear();
      this.#generation++;
      this.#hasJumped = true;
      previous = undefined;
    }
    const isRepeated = previous?.facts.number === number;
    // Pieces before the first segment carry its number.
    if (isRepeated && isFromStart) this.#unlist(previous!);
    const startMs = timeInPiece(header, at);
    const gapMs = previous && this.#isWaitingForCut ? startMs - previous.endMs : 0;
    const segment = this.#add({ serial: this.#serial++, epoch, number, startMs, isFromStart });
    this.#noteEdge(segment, gapMs);
    segment.decodeTicks = decodeTicks;
    segment.isListed = isFromStart || !isRepeated;
    if (this.#hasJumped && segment.isListed) {
      this.#hasJumped = false;
      segment.isDiscontinuous = true;
      this.#jumps++;
    }
    segment.discontinuity = this.#jumps;
    this.#cutter = isFromStart ? new PartCutter(this.pieceMs) : undefined;
    segment.isCutting = isFromStart;
    this.#isWaitingForCut = false;
    this.#append(header, bytes.subarray(at), at);
  }

  /** Appends `bytes` of a piece, which begin at offset `from` in it, to the open segment. */
  #append(header: PieceHeader, bytes: Uint8Array, from: number): void {
    const { randomAccessOffset = -1, spanMs, pieceBytes } = header;
    let last = this.#last!;
    if (last.bytes + bytes.length > MAX_SEGMENT_BYTES || last.runCount >= MAX_SEGMENT_PIECES)
      last = this.#splitSegment();
    if (pieceBytes === 0) last.silentMs += spanMs;
    const at = randomAccessOffset - from;
    const isCut = at >= 0 && at < bytes.length;
    const timeMs = timeInPiece(header, randomAccessOffset);
    const end = pieceBytes === 0 ? 0 : from + bytes.length;
    last.append(bytes, timeInPiece(header, end), isCut ? { at, timeMs } : undefined);
    this.#store.countAppended(bytes.length);
    if (bytes.length === 0 || !this.#cutter) return;
    this.#cutter.add(bytes, (spanMs * bytes.length) / pieceBytes, isCut ? at : -1);
    last.parts = this.#cutter.parts;
  }

  /** Continues in a new segment, because the open one is too long. */
  #splitSegment(): KeptSegment {
    const { facts, endMs } = this.#last!;
    this.#unlist(this.#last!);
    this.#closeLast(undefined);
    const rest = this.#add({ ...facts, serial: this.#serial++, startMs: endMs, isFromStart: false });
    rest.isListed = false;
    rest.discontinuity = this.#jumps;
    return rest;
  }

  /** Removes a segment from the manifest; a discontinuity before it then precedes the next one. */
  #unlist(segment: KeptSegment): void {
    if (segment.isDiscontinuous) {
      segment.isDiscontinuous = false;
      this.#jumps--;
      this.#hasJumped = true;
    }
    segment.isListed = false;
    segment.isCutting = false;
    this.#cutter = undefined;
  }

  #add(facts: KeptSegmentFacts): KeptSegment {
    const segment = new KeptSegment(facts);
    this.#last = segment;
    this.#store.add(segment);
    return segment;
  }

  #closeLast(nextTicks: number | undefined): void {
    const last = this.#last;
    if (!last || last.isClosed) return;
    this.#closeParts(last);
    last.durationMs = durationMsOf(last, nextTicks);
    if (last.isListed) this.#longestMs.add(last.durationMs, last.endMs);
    last.isClosed = true;
    this.#store.closed(last);
  }

  #closeParts(last: KeptSegment): void {
    if (!this.#cutter) return;
    this.#cutter.close();
    last.parts = this.#cutter.parts;
    last.isCutting = false;
    this.#cutter = undefined;
  }

  #notify(): void {
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }
}

/** Returns the bytes of a piece, copied at most once, without an incomplete packet at the end. */
function wholePackets(chunks: readonly Uint8Array[]): Uint8Array {
  const filled = chunks.filter(({ length }) => length > 0);
  const [first] = filled;
  // A view of a larger buffer would keep that in memory.
  const isOwn = first && filled.length === 1 && first.buffer.byteLength === first.length;
  const bytes = isOwn ? first : concatBytes(filled);
  return bytes.subarray(0, bytes.length - (bytes.length % TS_PACKET_BYTES));
}
