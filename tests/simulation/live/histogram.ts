/** Counts values in steps of 10 ms up to a minute: enough for quantiles of any number of values. */
export class Histogram {
  readonly #counts = new Float64Array(6_001);
  #total = 0;

  get total(): number {
    return this.#total;
  }

  add(ms: number): void {
    this.#counts[Math.max(0, Math.min(6_000, Math.floor(ms / 10)))]!++;
    this.#total++;
  }

  /** The value, in ms, below which the given share of all values lies. */
  quantile(part: number): number {
    let left = part * this.#total;
    for (let i = 0; i < this.#counts.length; i++) {
      left -= this.#counts[i]!;
      if (left <= 0 && this.#counts[i]! > 0) return 10 * (i + 1);
    }
    return 0;
  }
}
