import { TS_PACKET_BYTES } from "./ts-packet.ts";

/** A run of transport packets that travels as one. */
export interface LivePiece {
  /** Whole packets; none where the source was silent. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** When its last byte came, in UNIX ms; when it was closed, where it has none. */
  readonly timestampMs: number;
  /** How much time it spans: from the end of the piece before to its own. */
  readonly spanMs: number;
  /** The first clock of the programme in it, in ticks of 27 MHz. */
  readonly clockReference: number | undefined;
  /** Where a player may begin: PAT, PMT, then a keyframe. */
  readonly randomAccessOffset: number | undefined;
  /** A segment of HLS begins there. */
  readonly isSegmentStart: boolean;
  /** The number of the segment that begins in this piece, or else goes on in it. */
  readonly segment: number;
  /** What it brings does not go on from the piece before. */
  readonly isDiscontinuity: boolean;
}

/** The piece under way: gathers packets until it is closed. */
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

  /** Adds the packet at `at`, and returns where in the piece it begins. */
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

  /** Gives the continuity counter of the packet that begins at `start` another value. */
  renumber(start: number, continuity: number): void {
    this.#bytes[start + 3] = (this.#bytes[start + 3]! & 0xf0) | continuity;
  }

  /** The piece as it is now; this one is empty afterwards, and begins where that ended. */
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

/** A silent source has a piece each second, so that five never pass unless the machine itself stood still. */
const MAX_SPAN_MS = 5000;
