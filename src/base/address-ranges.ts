/** Addresses of one family as numbers of 32 bits, the highest first: one for IPv4, four for IPv6. */
export type AddressWords = 1 | 4;

/** A machine writes the low half of 64 bits first, or last. */
const IS_LOW_FIRST = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;
const FIRST_RANGES = 1024;

/** Gathers ranges of addresses, in any order and overlapping, and makes them a {@link AddressRanges}. */
export class AddressRangesBuilder {
  readonly #words: AddressWords;
  #pairs: Uint32Array<ArrayBuffer>;
  #count = 0;

  constructor(words: AddressWords) {
    this.#words = words;
    this.#pairs = new Uint32Array(2 * words * FIRST_RANGES);
  }

  /** Ranges gathered. */
  get count(): number {
    return this.#count;
  }

  /** Adds all from `first` to `last`, both included; false where there is none between them. */
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

  /** All that was gathered, in order, with what overlaps or meets as one. */
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

  /** As numbers of 64 bits, which the runtimes sort by themselves. */
  #sorted4(): Uint32Array<ArrayBuffer> {
    const pairs = this.#pairs.slice(0, 2 * this.#count);
    if (IS_LOW_FIRST) swapPairs(pairs);
    new BigUint64Array(pairs.buffer).sort();
    if (IS_LOW_FIRST) swapPairs(pairs);
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

/** Ranges of addresses of one family: eight bytes each for IPv4, and a look takes some twenty steps for a million. */
export class AddressRanges {
  readonly #pairs: Uint32Array;
  readonly #words: AddressWords;

  /** `pairs`: first and last address of each, in order, apart from each other. */
  constructor(pairs: Uint32Array, words: AddressWords) {
    this.#pairs = pairs;
    this.#words = words;
  }

  get count(): number {
    return this.#pairs.length / (2 * this.#words);
  }

  /** Whether an address is in one of them. */
  has(address: ArrayLike<number>): boolean {
    const [pairs, words] = [this.#pairs, this.#words];
    const size = 2 * words;
    let low = 0;
    let high = this.count;
    // The first range whose last address is not before this one.
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

/** Whether the range that begins at `first` overlaps one that ends at `last`, or follows it at once. */
function meets(pairs: Uint32Array, last: number, first: number, words: AddressWords): boolean {
  if (compare(pairs, first, pairs, last, words) <= 0) return true;
  // One more than `last`, word by word from the lowest.
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
