/** Slots in the order of their titles; equal titles in the order of their slots, which is that of their ids. */
export class TitleOrder {
  #slots = new Uint32Array(1024);
  #count = 0;
  readonly #keyOf: (slot: number) => string;

  constructor(keyOf: (slot: number) => string) {
    this.#keyOf = keyOf;
  }

  /** A view; good until the next change. */
  get slots(): Uint32Array {
    return this.#slots.subarray(0, this.#count);
  }

  /** Puts slots in that are not in it yet. Costs one pass over the order, however many they are. */
  insert(slots: readonly number[]): void {
    const sorted = [...slots].sort((a, b) => this.#compare(a, b));
    const total = this.#count + sorted.length;
    if (total > this.#slots.length) {
      const larger = new Uint32Array(Math.ceil(total * 1.5));
      larger.set(this.slots);
      this.#slots = larger;
    }
    // From the end, so that each run of old ones is moved once.
    let end = this.#count;
    for (let i = sorted.length - 1; i >= 0; i--) {
      const at = this.#positionFor(sorted[i]!, end);
      this.#slots.copyWithin(at + i + 1, at, end);
      this.#slots[at + i] = sorted[i]!;
      end = at;
    }
    this.#count = total;
  }

  /** Takes out what does not stay. */
  keep(stays: (slot: number) => boolean): void {
    let to = 0;
    for (let from = 0; from < this.#count; from++) {
      const slot = this.#slots[from]!;
      if (stays(slot)) this.#slots[to++] = slot;
    }
    this.#count = to;
  }

  /** Slots have new numbers; those that went are -1. Their order among each other is the same. */
  renumber(moved: Int32Array): void {
    this.keep((slot) => moved[slot] !== -1);
    for (let i = 0; i < this.#count; i++) this.#slots[i] = moved[this.#slots[i]!]!;
    if (this.#slots.length > 4 * this.#count + 1024) this.#slots = this.#slots.slice(0, this.#count + 1024);
  }

  #positionFor(slot: number, end: number): number {
    let low = 0;
    let high = end;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#compare(this.#slots[middle]!, slot) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #compare(a: number, b: number): number {
    const keyA = this.#keyOf(a);
    const keyB = this.#keyOf(b);
    return keyA < keyB ? -1 : keyA > keyB ? 1 : a - b;
  }
}
