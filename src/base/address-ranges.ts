/** 32-bit words in an address, most significant word first: one for IPv4, four for IPv6. */
type AddressWords = 1 | 4;

/** Little-endian machine: a 64-bit number stores its low 32 bits first. */
const IS_LITTLE_ENDIAN = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;
/** Ranges that fit before the buffer grows for the first time. */
const INITIAL_RANGES = 1024;

/** Collects address ranges of one family, in any order, overlapping or not, and builds an {@link AddressRanges}. */
export class AddressRangesBuilder {
  readonly #words: AddressWords;
  #pairs: Uint32Array<ArrayBuffer>;
  #count = 0;

  constructor(words: AddressWords) {
    this.#words = words;
    this.#pairs = new Uint32Array(2 * words * INITIAL_RANGES);
  }

  /** Ranges added so far. */
  get count(): number {
    return this.#count;
  }

  /** Adds the range `first` to `last`, both inclusive. Returns false, and adds nothing, if `first` is above `last`. */
  add(first: ArrayLike<number>, last: ArrayLike<number>): boolean {
    const words = this.#words;
    if (compare(first, 0, last, 0, words) > 0) return false;
    const at = 2 * words * this.#count;
    if (at === this.#pairs.length) {
      const grown = new Uint32Array(2 * at);
      grown.set(this.#pairs);
      this.#pairs = grown;
    }
    for (let i = 0; i < words; i++) {
      this.#pairs[at + i] = first[i]!;
      this.#pairs[at + words + i] = last[i]!;
    }
    this.#count++;
    return true;
  }

  /** Returns all ranges in order; overlapping and adjacent ranges are merged. */
  build(): AddressRanges {
    const words = this.#words;
    const sorted = words === 1 ? this.#sorted4() : this.#sorted6();
    const size = 2 * words;
    let kept = 0;
    for (let at = 0; at < sorted.length; at += size) {
      if (kept > 0 && meets(sorted, kept - words, at, words)) {
        if (compare(sorted, at + words, sorted, kept - words, words) > 0) {
          sorted.copyWithin(kept - words, at + words, at + size);
        }
        continue;
      }
      sorted.copyWithin(kept, at, at + size);
      kept += size;
    }
    return new AddressRanges(sorted.slice(0, kept), words);
  }

  /** Sorts IPv4 ranges as 64-bit numbers with the native sort of typed arrays. */
  #sorted4(): Uint32Array<ArrayBuffer> {
    const pairs = this.#pairs.slice(0, 2 * this.#count);
    if (IS_LITTLE_ENDIAN) swapPairs(pairs);
    new BigUint64Array(pairs.buffer).sort();
    if (IS_LITTLE_ENDIAN) swapPairs(pairs);
    return pairs;
  }

  #sorted6(): Uint32Array<ArrayBuffer> {
    const [pairs, words] = [this.#pairs, this.#words];
    const size = 2 * words;
    const order = Uint32Array.from({ length: this.#count }, (_, i) => i).sort((a, b) =>
      compare(pairs, a * size, pairs, b * size, words),
    );
    const sorted = new Uint32Array(size * this.#count);
    for (const [i, from] of order.entries()) {
      sorted.set(pairs.subarray(from * size, (from + 1) * size), i * size);
    }
    return sorted;
  }
}

/** A sorted set of address ranges of one family: 8 bytes per IPv4 range; a lookup is a binary search. */
export class AddressRanges {
  readonly #pairs: Uint32Array;
  readonly #words: AddressWords;

  /** @param pairs First and last address of each range, sorted, neither overlapping nor adjacent. */
  constructor(pairs: Uint32Array, words: AddressWords) {
    this.#pairs = pairs;
    this.#words = words;
  }

  /** Number of ranges after merging. */
  get count(): number {
    return this.#pairs.length / (2 * this.#words);
  }

  /** Returns true if a range contains `address`. */
  has(address: ArrayLike<number>): boolean {
    const [pairs, words] = [this.#pairs, this.#words];
    const size = 2 * words;
    let low = 0;
    let high = this.count;
    // Find the first range whose last address is at or after `address`.
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(pairs, middle * size + words, address, 0, words) < 0) low = middle + 1;
      else high = middle;
    }
    return low < this.count && compare(pairs, low * size, address, 0, words) <= 0;
  }
}

function compare(
  a: ArrayLike<number>,
  aAt: number,
  b: ArrayLike<number>,
  bAt: number,
  words: AddressWords,
): number {
  for (let i = 0; i < words; i++) {
    const difference = a[aAt + i]! - b[bAt + i]!;
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Returns true if a range that starts at `first` overlaps, or directly follows, a range that ends at `last`. */
function meets(pairs: Uint32Array, last: number, first: number, words: AddressWords): boolean {
  if (compare(pairs, first, pairs, last, words) <= 0) return true;
  // Compare with `last` plus one, from the lowest word up.
  for (let i = words - 1, carry = 1; i >= 0; i--) {
    const sum = pairs[last + i]! + carry;
    carry = sum > 0xffffffff ? 1 : 0;
    if (pairs[first + i] !== sum >>> 0) return false;
  }
  return true;
}

function swapPairs(pairs: Uint32Array): void {
  for (let at = 0; at < pairs.length; at += 2) {
    const first = pairs[at]!;
    pairs[at] = pairs[at + 1]!;
    pairs[at + 1] = first;
  }
}
