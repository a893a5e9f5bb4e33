/** Slots sorted by title; equal titles in the order of slots, which is that of ids. */
export class TitleOrder {
  #slots = new Uint32Array(1024);
  #count = 0;
  readonly #keyOf: (slot: number) => string;

  constructor(keyOf: (slot: number) => string) {
    this.#keyOf = keyOf;
  }

  /** A view, valid until the next change. */
  get slots(): Uint32Array {
    return this.#slots.subarray(0, this.#count);
  }

  /** Inserts new slots in one pass over the order. */
  insert(slots: readonly number[]): void {
    const sorted = [...slots].sort((a, b) => compare(this.#keyOf(a), a, this.#keyOf(b), b));
    const total = this.#count + sorted.length;
    if (total > this.#slots.length) {
      const larger = new Uint32Array(Math.ceil(total * 1.5));
      larger.set(this.slots);
      this.#slots = larger;
    }
    // From the end, so that each existing run is moved once.
    let end = this.#count;
    for (let i = sorted.length - 1; i >= 0; i--) {
      const at = this.placeFor(this.#keyOf(sorted[i]!), sorted[i]!, end);
      this.#slots.copyWithin(at + i + 1, at, end);
      this.#slots[at + i] = sorted[i]!;
      end = at;
    }
    this.#count = total;
  }

  /** Returns the place of the first slot that has this sort key or a larger one; among equal keys, `slot` or a larger one. */
  placeFor(sortKey: string, slot: number, end = this.#count): number {
    let low = 0;
    let high = end;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#slots[middle]!;
      if (compare(this.#keyOf(other), other, sortKey, slot) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Removes the slots for which `stays` is false. */
  keep(stays: (slot: number) => boolean): void {
    let to = 0;
    for (let from = 0; from < this.#count; from++) {
      const slot = this.#slots[from]!;
      if (stays(slot)) this.#slots[to++] = slot;
    }
    this.#count = to;
  }

  /** Replaces slot numbers by `moved`; removes those with -1. The relative order must be the same. */
  renumber(moved: Int32Array): void {
    this.keep((slot) => moved[slot] !== -1);
    for (let i = 0; i < this.#count; i++) this.#slots[i] = moved[this.#slots[i]!]!;
    if (this.#slots.length > 4 * this.#count + 1024) this.#slots = this.#slots.slice(0, this.#count + 1024);
  }
}

function compare(keyA: string, slotA: number, keyB: string, slotB: number): number {
  return keyA < keyB ? -1 : keyA > keyB ? 1 : slotA - slotB;
}
