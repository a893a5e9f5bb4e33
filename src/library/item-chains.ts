const FIRST_BUCKETS = 1024;

/** A hash table over columns: slots whose 32 bits fall into one bucket are chained, the newest first. */
export class Chains {
  #heads = new Int32Array(FIRST_BUCKETS).fill(-1);

  /** The first slot that may have these bits, or -1; the column of links gives the others. */
  first(bits: number): number {
    return this.#heads[bits & (this.#heads.length - 1)]!;
  }

  add(slot: number, bits: number, links: Int32Array): void {
    const bucket = bits & (this.#heads.length - 1);
    links[slot] = this.#heads[bucket]!;
    this.#heads[bucket] = slot;
  }

  remove(slot: number, bits: number, links: Int32Array): void {
    const bucket = bits & (this.#heads.length - 1);
    if (this.#heads[bucket] === slot) {
      this.#heads[bucket] = links[slot]!;
      return;
    }
    for (let at = this.#heads[bucket]!; at !== -1; at = links[at]!) {
      if (links[at] !== slot) continue;
      links[at] = links[slot]!;
      return;
    }
  }

  /** Whether a table for so many slots should be built anew, larger. */
  isFull(slots: number): boolean {
    return slots > this.#heads.length;
  }

  /** Builds the table anew, for `count` slots and as many more. `has` says which of them belong in it. */
  rebuild(count: number, bits: Uint32Array, links: Int32Array, has: (slot: number) => boolean): void {
    this.#heads = new Int32Array(2 ** Math.max(10, Math.ceil(Math.log2(2 * count + 1)))).fill(-1);
    for (let slot = 0; slot < count; slot++) if (has(slot)) this.add(slot, bits[slot]!, links);
  }
}
