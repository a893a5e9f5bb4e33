/** Writes bits from the high end; grows as needed. The opposite of `BitReader`. */
export class BitWriter {
  #bytes = new Uint8Array(1024);
  #length = 0;
  /** Bits that do not fill a byte yet, in the low end. */
  #open = 0;
  #openBits = 0;

  /** Writes the `count` (0 to 24) low bits of `value`. */
  bits(value: number, count: number): void {
    this.#open = (this.#open << count) | (value & ((1 << count) - 1));
    this.#openBits += count;
    while (this.#openBits >= 8) {
      this.#openBits -= 8;
      this.#put((this.#open >>> this.#openBits) & 255);
    }
    this.#open &= (1 << this.#openBits) - 1;
  }

  /** An unsigned Exp-Golomb number below 2^16, `ue(v)` (ISO 14496-10 9.1). */
  ue(value: number): void {
    const code = value + 1;
    const length = 32 - Math.clz32(code);
    this.bits(0, length - 1);
    this.bits(code, length);
  }

  /** A signed Exp-Golomb number, `se(v)`. */
  se(value: number): void {
    this.ue(value > 0 ? 2 * value - 1 : -2 * value);
  }

  /** Fills the open byte with zeros. */
  align(): void {
    if (this.#openBits > 0) this.bits(0, 8 - this.#openBits);
  }

  /** All whole bytes, as a copy. */
  bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#length);
  }

  #put(byte: number): void {
    if (this.#length === this.#bytes.length) {
      const larger = new Uint8Array(2 * this.#length);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes[this.#length++] = byte;
  }
}
