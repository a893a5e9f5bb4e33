import { concatBytes } from "../../base/bytes.ts";
import { SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Instant } from "../../base/time.ts";
import { TS_PACKET_BYTES } from "../../media/ts-packet.ts";
import type { Clock, Files } from "../../runtime/contract.ts";
import type { PieceHeader } from "../../wire/live-header.ts";
import type { PieceSink } from "./contract.ts";
import { PartCutter } from "./live-window-parts.ts";
import { KeptSegment, type KeptSegmentFacts } from "./live-window-segment.ts";
import { LiveWindowStore } from "./live-window-store.ts";
import {
  type ClockSight,
  decodeTicksAt,
  durationMsOf,
  hasGoneOn,
  isTorn,
  LongestLately,
  timeInPiece,
} from "./live-window-times.ts";

/** What the window of a stream is made of. */
export interface LiveWindowParts {
  readonly files: Pick<Files, "open" | "remove">;
  readonly clock: Clock;
  /** A folder of its own for what is no longer in memory; undefined for none. */
  readonly folder: string | undefined;
  /** Resolves when nobody else has that folder any more. */
  readonly free: Promise<void>;
  /** How far back players may go. */
  readonly limitMs: number;
  /** How much disk it may take now, of what all streams share; 0 for none. */
  readonly limitBytes: () => number;
  readonly segmentMs: number;
  readonly pieceMs: number;
  readonly log: Log;
}

/** A segment that is longer is kept in several, and is none for HLS: 4 s at 64 Mbit/s. */
const MAX_SEGMENT_BYTES = 32 * 1024 * 1024;
/** So is one of more pieces: ten seconds of pieces of a few packets each. */
const MAX_SEGMENT_PIECES = 8192;

/**
 * What is kept of a live stream for its players: the latest seconds in memory, the rest on disk, as segments of HLS whose borders and numbers the
 * source has signed. It neither waits for anybody nor knows who reads; who reads waits for {@link once}.
 */
export class LiveWindow implements PieceSink {
  readonly segmentMs: number;
  readonly pieceMs: number;
  readonly #clock: Clock;
  readonly #store: LiveWindowStore;
  readonly #hearers = new Set<() => void>();
  #epoch = -1;
  #nextSeq = 0;
  #last: KeptSegment | undefined;
  #cutter: PartCutter | undefined;
  /** Something is missing: what comes is of no use before the next place where a player can begin. */
  #isLost = true;
  /** What is missing may hide a jump of the clocks: the next sight of the clock tells. */
  #isUnsure = false;
  /** The clocks have jumped since the last segment began. */
  #isJump = false;
  #jumps = 0;
  #sight: ClockSight | undefined;
  readonly #longest = new LongestLately();
  #serial = 0;
  #generation = 0;
  #hasEnded = false;
  #isClosed = false;
  #heardAt: Instant;

  constructor(parts: LiveWindowParts) {
    this.segmentMs = parts.segmentMs;
    this.pieceMs = parts.pieceMs;
    this.#clock = parts.clock;
    this.#heardAt = parts.clock.now();
    this.#store = new LiveWindowStore(parts);
  }

  /** The source has ended, and meant to. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Grows where numbers begin anew: the same number is then another segment. */
  get generation(): number {
    return this.#generation;
  }

  /** The kept segments, the oldest first; some among them may be gone. The last one may be open. */
  get segments(): readonly KeptSegment[] {
    return this.#store.segments;
  }

  /** Until when there is media, in UNIX ms; undefined before there is any. */
  get edgeMs(): number | undefined {
    return this.#last?.endMs;
  }

  /** When the last piece came. */
  get heardAt(): Instant {
    return this.#heardAt;
  }

  /** The longest segment of the last hour or two, in ms, and no less than the source means segments to be. */
  get longestMs(): number {
    return Math.max(this.segmentMs, this.#longest.value);
  }

  /** Bytes of media in memory, and on disk. */
  get kept(): { readonly memoryBytes: number; readonly diskBytes: number } {
    return this.#store;
  }

  /** The segment that follows, where there is one. */
  after({ facts }: KeptSegment): KeptSegment | undefined {
    return this.#store.from(facts.serial + 1);
  }

  /** What stands at `at` in a segment, at most `limit` bytes. Rejects with `no_such_segment` where it has gone by or cannot be read. */
  async read(segment: KeptSegment, at: number, limit: number): Promise<Uint8Array> {
    return this.#store.read(segment, at, limit);
  }

  /** Calls `hear` once, when something has changed; the returned function takes that back. Throws `session_stopped` where
   * nothing will change any more. */
  once(hear: () => void): () => void {
    if (this.#isClosed) throw new SluiceError("session_stopped", "the live stream was closed");
    this.#hearers.add(hear);
    return () => void this.#hearers.delete(hear);
  }

  piece(header: PieceHeader, chunks: readonly Uint8Array[]): void {
    if (this.#isClosed || !this.#isNext(header)) return;
    this.#heardAt = this.#clock.now();
    this.#hasEnded = header.isEnd;
    this.#look(header);
    this.#take(header, wholePackets(chunks));
    if (header.isEnd) {
      this.#closeLast(undefined);
      this.#isLost = true;
    }
    this.#store.keepBounds();
    this.#tell();
  }

  skip(seq: number): void {
    if (seq >= this.#nextSeq) this.#nextSeq = seq + 1;
    this.#lose();
  }

  restarted(): void {
    this.#lose();
    this.#isJump = this.#last !== undefined;
    this.#hasEnded = false;
  }

  /** Forgets everything, and removes it from the disk. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#tell();
    await this.#store.close();
  }

  /** Whether this piece follows what was there; what is missing before it is lost. */
  #isNext({ epoch, seq }: PieceHeader): boolean {
    if (epoch < this.#epoch || (epoch === this.#epoch && seq < this.#nextSeq)) return false;
    if (epoch > this.#epoch) {
      if (this.#epoch >= 0) this.restarted();
    } else if (seq > this.#nextSeq) {
      this.#lose();
    }
    this.#epoch = epoch;
    this.#nextSeq = seq + 1;
    return true;
  }

  #lose(): void {
    this.#isLost = true;
    this.#isUnsure = this.#last !== undefined;
  }

  /** Looks at the programme's clock, which tells whether what is missing hides a jump. */
  #look({ clockReference, timestampMs }: PieceHeader): void {
    if (clockReference === undefined) return;
    const sight = { reference: clockReference, timestampMs };
    if (this.#isUnsure && !hasGoneOn(this.#sight, sight)) this.#isJump = true;
    this.#isUnsure = false;
    this.#sight = sight;
  }

  #take(header: PieceHeader, bytes: Uint8Array): void {
    const { randomAccessOffset = bytes.length, isSegmentStart } = header;
    const cutAt = randomAccessOffset < bytes.length ? randomAccessOffset : undefined;
    if (header.isDiscontinuity) this.#tear(header);
    if (cutAt !== undefined && isSegmentStart) {
      if (!this.#isLost) this.#append(header, bytes.subarray(0, cutAt), 0);
      this.#begin(header, bytes, cutAt, true);
    } else if (!this.#isLost) {
      this.#append(header, bytes, 0);
    } else if (cutAt !== undefined) {
      this.#resume(header, bytes, cutAt);
    }
  }

  /** The clocks jump at the start of this piece. What comes before the next place to begin is of no segment. */
  #tear(header: PieceHeader): void {
    const last = this.#last;
    this.#isJump = last !== undefined;
    if (!last || last.isClosed) return;
    // A source that was gone for long has sent nothing meanwhile: the segment is as long as what it holds.
    last.mediaEnd ??= { at: last.bytes, timeMs: Math.min(last.endMs, timeInPiece(header, 0)) };
    this.#closeParts(last);
  }

  /** Goes on behind what is missing: in the segment that was open, or in what is there of another. */
  #resume(header: PieceHeader, bytes: Uint8Array, at: number): void {
    if (this.#isUnsure) this.#isJump = true;
    const last = this.#last;
    if (!last || last.isClosed || this.#isJump || last.facts.number !== header.segment) {
      this.#begin(header, bytes, at, false);
      return;
    }
    // Nobody can say where the next of its parts would begin.
    this.#cutter = undefined;
    last.isCutting = false;
    this.#isLost = false;
    this.#append(header, bytes.subarray(at), at);
  }

  #begin(header: PieceHeader, bytes: Uint8Array, at: number, isFromStart: boolean): void {
    const { epoch, segment: number } = header;
    const decodeTicks = decodeTicksAt(bytes, at);
    this.#closeLast(this.#isLost || this.#isJump ? undefined : decodeTicks);
    let previous = this.#last;
    if (previous && isTorn(previous)) this.#isJump = true;
    if (previous && number < previous.facts.number) {
      this.#store.clear();
      this.#generation++;
      this.#isJump = true;
      previous = undefined;
    }
    const isRepeated = previous?.facts.number === number;
    // Pieces before the first segment bear its number.
    if (isRepeated && isFromStart) this.#unlist(previous!);
    const startMs = timeInPiece(header, at);
    const segment = this.#add({ serial: this.#serial++, epoch, number, startMs, isFromStart });
    segment.decodeTicks = decodeTicks;
    segment.isListed = isFromStart || !isRepeated;
    if (this.#isJump && segment.isListed) {
      this.#isJump = false;
      segment.isDiscontinuous = true;
      this.#jumps++;
    }
    segment.discontinuity = this.#jumps;
    this.#cutter = isFromStart ? new PartCutter(this.pieceMs) : undefined;
    segment.isCutting = isFromStart;
    this.#isLost = false;
    this.#append(header, bytes.subarray(at), at);
  }

  /** Puts bytes of a piece, which begin at `from` in it, to the open segment. */
  #append(header: PieceHeader, bytes: Uint8Array, from: number): void {
    const { randomAccessOffset = -1, spanMs, pieceBytes } = header;
    let last = this.#last!;
    if (last.bytes + bytes.length > MAX_SEGMENT_BYTES || last.runCount >= MAX_SEGMENT_PIECES)
      last = this.#roll();
    if (pieceBytes === 0) last.silentMs += spanMs;
    const at = randomAccessOffset - from;
    const isCut = at >= 0 && at < bytes.length;
    const timeMs = timeInPiece(header, randomAccessOffset);
    const end = pieceBytes === 0 ? 0 : from + bytes.length;
    last.append(bytes, timeInPiece(header, end), isCut ? { at, timeMs } : undefined);
    this.#store.grew(bytes.length);
    if (bytes.length === 0 || !this.#cutter) return;
    this.#cutter.add(last.bytes, (spanMs * bytes.length) / pieceBytes, at === 0);
    last.parts = this.#cutter.parts;
  }

  /** Goes on in another, since the open one is too long for a segment. */
  #roll(): KeptSegment {
    const { facts, endMs } = this.#last!;
    this.#unlist(this.#last!);
    this.#closeLast(undefined);
    const rest = this.#add({ ...facts, serial: this.#serial++, startMs: endMs, isFromStart: false });
    rest.isListed = false;
    rest.discontinuity = this.#jumps;
    return rest;
  }

  /** It is no segment of HLS; a jump before it is one before the next. */
  #unlist(segment: KeptSegment): void {
    if (segment.isDiscontinuous) {
      segment.isDiscontinuous = false;
      this.#jumps--;
      this.#isJump = true;
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
    if (last.isListed) this.#longest.add(last.durationMs, last.endMs);
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

  #tell(): void {
    const hearers = [...this.#hearers];
    this.#hearers.clear();
    for (const hear of hearers) hear();
  }
}

/** The bytes of a piece, copied at most once; no packet that is cut short, whatever the source has signed. */
function wholePackets(chunks: readonly Uint8Array[]): Uint8Array {
  const filled = chunks.filter(({ length }) => length > 0);
  const [first] = filled;
  // A view on something larger would keep that in memory.
  const isOwn = first && filled.length === 1 && first.buffer.byteLength === first.length;
  const bytes = isOwn ? first : concatBytes(filled);
  return bytes.subarray(0, bytes.length - (bytes.length % TS_PACKET_BYTES));
}
