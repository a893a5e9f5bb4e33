import { TS_PACKET_BYTES } from "./ts-packet.ts";

/** A run of transport packets that is transferred as one unit. */
export interface LivePiece {
  /** Whole packets; empty if the source was silent. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** When its last byte arrived, in UNIX milliseconds; for an empty piece, when it was closed. */
  readonly timestampMs: number;
  /** Time from the end of the previous piece to its own. */
  readonly spanMs: number;
  /** Its first PCR, in 27 MHz ticks. */
  readonly clockReference: number | undefined;
  /** Byte offset where playback can start: PAT, PMT, then a key frame. */
  readonly randomAccessOffset: number | undefined;
  /** True if an HLS segment begins at `randomAccessOffset`. */
  readonly isSegmentStart: boolean;
  /** Number of the segment that begins in this piece, or else continues in it. */
  readonly segment: number;
  /** True if its packets do not continue the previous piece. */
  readonly isDiscontinuity: boolean;
}

/** The current piece, which collects packets until it is closed. */
export class OpenPiece {
  #bytes = new Uint8Array(64 * 1024);
  length = 0;
  clockReference: number | undefined;
  randomAccessOffset: number | undefined;
  isSegmentStart = false;
  isDiscontinuity = false;
  lastByteAtMs: number | undefined;
  openedAtMs: number;

  constructor(openedAtMs: number) {
    this.openedAtMs = openedAtMs;
  }

  /** Adds the packet at offset `at` of `packets`, and returns its offset in the piece. */
  add(packets: Uint8Array, at: number, nowMs: number): number {
    if (this.length + TS_PACKET_BYTES > this.#bytes.length) {
      const larger = new Uint8Array(2 * this.#bytes.length);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    const start = this.length;
    this.#bytes.set(packets.subarray(at, at + TS_PACKET_BYTES), start);
    this.length += TS_PACKET_BYTES;
    this.lastByteAtMs = nowMs;
    return start;
  }

  /** Sets the continuity counter of the packet at offset `start` of the piece. */
  renumber(start: number, continuity: number): void {
    this.#bytes[start + 3] = (this.#bytes[start + 3]! & 0xf0) | continuity;
  }

  /** Returns the piece and starts an empty one at its end. */
  close(nowMs: number, segment: number): LivePiece {
    const spanMs = Math.min(MAX_SPAN_MS, Math.max(0, Math.round(nowMs - this.openedAtMs)));
    const piece = {
      bytes: this.#bytes.slice(0, this.length),
      timestampMs: this.lastByteAtMs ?? nowMs,
      spanMs,
      clockReference: this.clockReference,
      randomAccessOffset: this.randomAccessOffset,
      isSegmentStart: this.isSegmentStart,
      segment,
      isDiscontinuity: this.isDiscontinuity,
    };
    this.length = 0;
    this.clockReference = undefined;
    this.randomAccessOffset = undefined;
    this.isSegmentStart = false;
    this.isDiscontinuity = false;
    this.lastByteAtMs = undefined;
    this.openedAtMs = nowMs;
    return piece;
  }
}

/** Limit of a span. Even a silent source closes a piece every second, so only a suspended machine exceeds it. */
const MAX_SPAN_MS = 5000;
