/** A part of a live segment (RFC 8216bis 4.4.4.9). */
export interface LivePart {
  /** Bytes from the start of the segment. */
  readonly start: number;
  readonly end: number;
  readonly durationMs: number;
  /** Begins with tables and a keyframe. */
  readonly isIndependent: boolean;
}

/** Parts are not shorter: each is a request of every player. */
const LEAST_PART_MS = 250;
/** The source closes a piece with the first packet after its time, so pieces are a little longer than they should be. */
const SLACK = 1.1;
/** RFC 8216bis 4.4.4.9: no part is below this share of the target, but the last of a segment and those that are independent. */
const LEAST_SHARE = 0.85;

/** How long the parts of a stream are at most, in ms, where its pieces have this length. */
export function partTargetMs(pieceMs: number): number {
  return Math.round(SLACK * partPieces(pieceMs) * pieceMs);
}

/** The pieces of a part. */
function partPieces(pieceMs: number): number {
  return Math.ceil(LEAST_PART_MS / pieceMs);
}

/**
 * Cuts a segment into parts, at the ends of pieces. It goes by what the pieces themselves say, so that all engines have the
 * same parts of a segment that they have from its start. Where pieces differ so much that a part would come out too short, another
 * piece goes into it; one that is longer than the target is told as long as that.
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

  /** Those that are complete. */
  get parts(): readonly LivePart[] {
    return this.#parts;
  }

  /** The segment goes on to `end` with a piece, or part of one, of this span. `isCut`: a player can begin at its first byte. */
  add(end: number, spanMs: number, isCut: boolean): void {
    if (this.#end === this.#start) this.#isIndependent = isCut;
    this.#end = end;
    this.#spanMs += spanMs;
    if (this.#spanMs >= LEAST_SHARE * this.#targetMs) this.close();
  }

  /** The segment ends, or can be cut no further: what is left is its last part. */
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
