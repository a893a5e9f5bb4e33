import { TICKS_PER_SECOND } from "./timestamps.ts";

/** More than the longest delay between the streams of a broadcast: two minutes of segments of 2 s. */
const KEPT_CELLS = 64;

/**
 * Common boundaries and numbers of the HLS segments of several streams with the same timestamps, so that players can change between
 * them at any segment. Time is divided into cells of the minimum duration of a segment. The first key frame in a cell begins a segment,
 * and the segments that begin in one cell have the same number in all streams.
 */
export class SegmentGrid {
  readonly #ticks: number;
  /** In the order in which the first of the streams reached them. */
  readonly #cells: { readonly cell: number; readonly number: number }[] = [];

  constructor(segmentMs: number) {
    this.#ticks = (segmentMs * TICKS_PER_SECOND) / 1000;
  }

  /** The lowest number that a stream can get; undefined before the first segment of any. */
  get least(): number | undefined {
    return this.#cells[0]?.number;
  }

  /** Returns the cell of a time of 33 bits. */
  cellOf(pts: number): number {
    return Math.floor(pts / this.#ticks);
  }

  /** Returns the number of the segment that begins in a cell, `least` or above. */
  numberOf(cell: number, least: number): number {
    const found = this.#cells.findLast((known) => known.cell === cell);
    if (found && found.number >= least) return found.number;
    const number = Math.max(least, (this.#cells.at(-1)?.number ?? -1) + 1);
    this.#cells.push({ cell, number });
    if (this.#cells.length > KEPT_CELLS) this.#cells.shift();
    return number;
  }
}
