import type { Random } from "../../base/random.ts";

/** Pieces for which one draw counts: 4 s of 125 ms, about what one fetch brings. */
const RUN_PIECES = 32;
/** A fetch takes so long until one was measured. */
const FIRST_FETCH_MS = 1_500;
/** So much sooner than the others goes whose turn it is: time to hand on what it fetches. */
const AHEAD_MS = 500;
const MARGIN_MS = 250;
const MAX_FETCH_MS = 10_000;

/**
 * Says when a missing piece is worth a fetch. Of neighbours that lack the same about one goes first, when what remains is 1.5 × the time a fetch takes;
 * what it brings reaches the others, who go by themselves only when it did not.
 */
export class WebTurns {
  readonly #random: Random;
  #fetchMs = FIRST_FETCH_MS;
  #isMeasured = false;
  #run = -1;
  #isOurs = false;

  constructor(random: Random) {
    this.#random = random;
  }

  /** A fetch has taken so long. */
  took(ms: number): void {
    const bounded = Math.min(MAX_FETCH_MS, Math.max(1, ms));
    // It grows at once, and falls slowly.
    const isSlower = bounded > this.#fetchMs;
    this.#fetchMs = isSlower || !this.#isMeasured ? bounded : 0.75 * this.#fetchMs + 0.25 * bounded;
    this.#isMeasured = true;
  }

  /** How much must remain at least of the time of a piece, for whose turn it is, or who has it already. */
  get firstMs(): number {
    return Math.max(1.5 * this.#fetchMs, this.#fetchMs + MARGIN_MS + AHEAD_MS);
  }

  /** The same for a piece that would have to be fetched. */
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
