import type { Random } from "../../base/random.ts";

/** Pieces per draw: 4 s of 125 ms, about as much as one fetch brings. */
const RUN_PIECES = 32;
/** Estimated duration of a fetch before the first measurement. */
const FIRST_FETCH_MS = 1_500;
/** The viewer whose turn it is fetches this much earlier, to forward the pieces in time. */
const AHEAD_MS = 500;
const MARGIN_MS = 250;
const MAX_FETCH_MS = 10_000;

/** Decides when to fetch a missing piece. Of the neighbors that miss the same piece, about one fetches first, when the
 * remaining time is 1.5 × the duration of a fetch; the others receive it from that one, and fetch only if that fails. */
export class WebTurns {
  readonly #random: Random;
  #fetchMs = FIRST_FETCH_MS;
  #isMeasured = false;
  #run = -1;
  #isOurs = false;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Adds a measured fetch duration. */
  took(ms: number): void {
    const bounded = Math.min(MAX_FETCH_MS, Math.max(1, ms));
    // The estimate rises at once and falls slowly.
    const isSlower = bounded > this.#fetchMs;
    this.#fetchMs = isSlower || !this.#isMeasured ? bounded : 0.75 * this.#fetchMs + 0.25 * bounded;
    this.#isMeasured = true;
  }

  /** The remaining time at which to fetch if it is our turn. */
  get firstMs(): number {
    return Math.max(1.5 * this.#fetchMs, this.#fetchMs + MARGIN_MS + AHEAD_MS);
  }

  /** The remaining time at which to fetch this piece. */
  dueMs(seq: number, neighbours: number): number {
    return this.#isTurn(seq, neighbours) ? this.firstMs : this.#fetchMs + MARGIN_MS;
  }

  #isTurn(seq: number, neighbours: number): boolean {
    const run = Math.floor(seq / RUN_PIECES);
    if (run > this.#run || run < this.#run - 1) {
      this.#run = run;
      this.#isOurs = this.#random() < 1 / (neighbours + 1);
    }
    return this.#isOurs;
  }
}
