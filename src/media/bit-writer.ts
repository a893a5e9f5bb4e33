/** Writes bits, most significant first; the counterpart of `BitReader`. */
export class BitWriter {
  #bytes = new Uint8Array(1024);
  #length = 0;
  /** Bits of the incomplete last byte, in the low bits. */
  #open = 0;
  #openBits = 0;

  /** Writes the low `count` bits (0 to 24) of `value`. */
  bits(value: number, count: number): void {
    this.#open = (this.#open << count) | (value & ((1 << count) - 1));
    this.#openBits += count;
    while (this.#openBits >= 8) {
      this.#openBits -= 8;
      this.#put((this.#open >>> this.#openBits) & 255);
    }
    this.#open &= (1 << this.#openBits) - 1;
  }

  /** Writes an unsigned Exp-Golomb number below 2^16, `ue(v)` (ISO 14496-10 9.1). */
  ue(value: number): void {
    const code = value + 1;
    const length = 32 - Math.clz32(code);
    this.bits(0, length - 1);
    this.bits(code, length);
  }

  /** Writes a signed Exp-Golomb number, `se(v)` (ISO 14496-10 9.1.1). */
  se(value: number): void {
    this.ue(value > 0 ? 2 * value - 1 : -2 * value);
  }

  /** Fills the incomplete last byte with zeros. */
  align(): void {
    if (this.#openBits > 0) this.bits(0, 8 - this.#openBits);
  }

  /** Returns a copy of all complete bytes. */
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
