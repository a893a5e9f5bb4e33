/**
 * A fast 64-bit hash with a random seed, so that colliding texts cannot be prepared; comparable only within one process.
 * The result is in `low` and `high` until the next call.
 */
export class TextHash {
  low = 0;
  high = 0;
  readonly #seedLow: number;
  readonly #seedHigh: number;

  constructor(seedLow: number, seedHigh: number) {
    this.#seedLow = seedLow;
    this.#seedHigh = seedHigh;
  }

  of(text: string): void {
    let a = this.#seedLow ^ text.length;
    let b = this.#seedHigh;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      a = Math.imul(a ^ unit, 0x9e3779b1);
      a ^= a >>> 15;
      b = Math.imul(b ^ unit, 0x85ebca77);
      b ^= b >>> 13;
    }
    this.low = mixed(a ^ Math.imul(b, 0xc2b2ae3d));
    this.high = mixed(b ^ Math.imul(a, 0x27d4eb2f));
  }
}

function mixed(word: number): number {
  const once = Math.imul(word ^ (word >>> 16), 0x7feb352d);
  const twice = Math.imul(once ^ (once >>> 15), 0x846ca68b);
  return (twice ^ (twice >>> 16)) >>> 0;
}
