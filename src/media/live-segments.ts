import type { SegmentGrid } from "./segment-grid.ts";
import { deltaTicks, TICKS_PER_SECOND } from "./timestamps.ts";

/** Steps of the DTS outside these limits are discontinuities. */
const MAX_BACK_TICKS = 0.1 * TICKS_PER_SECOND;
const MAX_STEP_TICKS = 3 * TICKS_PER_SECOND;

/**
 * Decides at which key frames HLS segments begin, and numbers them. Only the source of a broadcast runs it, so all viewers have the same
 * segments whenever they join.
 */
export class LiveSegments {
  readonly #segmentTicks: number;
  readonly #segmentMs: number;
  readonly #first: number | undefined;
  readonly #grid: SegmentGrid | undefined;
  #cell: number | undefined;
  /** Number of the current segment; undefined before the first. */
  #number: number | undefined;
  #ticks = 0;
  #lastDts: number | undefined;
  #frameTicks = TICKS_PER_SECOND / 25;
  #isDiscontinuous = false;

  /** `first` is the number of the first segment, for a restarted source; if undefined, the number is computed from the time.
   * `grid`: common with other streams. */
  constructor(segmentMs: number, first: number | undefined, grid?: SegmentGrid) {
    this.#grid = grid;
    this.#segmentMs = segmentMs;
    this.#segmentTicks = (segmentMs * TICKS_PER_SECOND) / 1000;
    this.#first = first;
  }

  /** The segment number for a piece that is closed at `nowMs` (UNIX milliseconds). */
  numberAt(nowMs: number): number {
    return this.#number ?? this.#first ?? this.#grid?.least ?? Math.floor(nowMs / this.#segmentMs);
  }

  /** Marks a discontinuity: the next key frame begins a segment. */
  break(): void {
    this.#isDiscontinuous = true;
    this.#lastDts = undefined;
  }

  /** Processes a unit of the leading stream. Returns true if a segment begins with it. */
  addUnit(
    { dts, pts }: { readonly dts: number; readonly pts: number },
    isKey: boolean,
    nowMs: number,
  ): boolean {
    const step = this.#lastDts === undefined ? 0 : deltaTicks(dts, this.#lastDts);
    this.#lastDts = dts;
    if (step > 0 && step <= MAX_STEP_TICKS) this.#frameTicks = step;
    const isDiscontinuity = step < -MAX_BACK_TICKS || step > MAX_STEP_TICKS;
    this.#ticks += isDiscontinuity ? this.#frameTicks : step;
    if (isDiscontinuity) this.#isDiscontinuous = true;
    const cell = this.#grid?.cellOf(pts);
    const isDue =
      this.#number === undefined ||
      this.#isDiscontinuous ||
      (cell === undefined
        ? this.#ticks >= this.#segmentTicks - Math.min(this.#frameTicks / 2, this.#segmentTicks / 10)
        : cell !== this.#cell);
    if (!isKey || !isDue) return false;
    const least = this.#number === undefined ? this.numberAt(nowMs) : this.#number + 1;
    this.#number = cell === undefined ? least : this.#grid!.numberOf(cell, least);
    this.#cell = cell;
    this.#ticks = 0;
    this.#isDiscontinuous = false;
    return true;
  }
}
