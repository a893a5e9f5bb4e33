/** A part of a live segment (RFC 8216bis 4.4.4.9): bytes `[start, end)` of the segment. */
export interface LivePart {
  readonly start: number;
  readonly end: number;
  readonly durationMs: number;
  /** It begins with tables and a keyframe. */
  readonly isIndependent: boolean;
}

/** Minimum duration of a part: each one is a request from every player. */
const MIN_PART_MS = 250;
/** The source closes a piece with the first packet after its time, so pieces are slightly too long. */
const SLACK = 1.1;
/** RFC 8216bis 4.4.4.9: minimum share of the target duration, except for the last part of a segment and independent
 * parts. */
const MIN_SHARE = 0.85;

/** Returns the maximum duration of a part, in ms, for pieces of `pieceMs`. */
export function partTargetMs(pieceMs: number): number {
  return Math.round(SLACK * piecesPerPart(pieceMs) * pieceMs);
}

/** Returns the number of pieces in a part. */
function piecesPerPart(pieceMs: number): number {
  return Math.ceil(MIN_PART_MS / pieceMs);
}

/**
 * Cuts a segment into parts at piece boundaries. It uses only the piece headers, so all engines that have a segment
 * from its start produce the same parts. If pieces vary and a part would be too short, it gets another piece; a part
 * longer than the target is listed with the target duration.
 */
export class PartCutter {
  readonly #targetMs: number;
  readonly #parts: LivePart[] = [];
  #start = 0;
  #end = 0;
  #spanMs = 0;
  #isIndependent = true;

  constructor(pieceMs: number) {
    this.#targetMs = partTargetMs(pieceMs);
  }

  /** The complete parts. */
  get parts(): readonly LivePart[] {
    return this.#parts;
  }

  /** Extends the segment to `end` with a piece, or a part of a piece, of `spanMs`. `isCut`: its first byte is a random
   * access point. */
  add(end: number, spanMs: number, isCut: boolean): void {
    if (this.#end === this.#start) this.#isIndependent = isCut;
    this.#end = end;
    this.#spanMs += spanMs;
    if (this.#spanMs >= MIN_SHARE * this.#targetMs) this.close();
  }

  /** Ends the last part: the segment is complete, or cannot be cut any further. */
  close(): void {
    if (this.#end > this.#start) {
      this.#parts.push({
        start: this.#start,
        end: this.#end,
        durationMs: Math.min(this.#targetMs, Math.max(1, this.#spanMs)),
        isIndependent: this.#isIndependent,
      });
    }
    this.#start = this.#end;
    this.#spanMs = 0;
    this.#isIndependent = false;
  }
}
