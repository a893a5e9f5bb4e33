/** A fixed-length set of bits in wire order: bit 0 is the high bit of byte 0 (BEP 3 `bitfield`). */
export class Bits {
  readonly length: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  #count = 0;

  constructor(length: number) {
    this.length = length;
    this.bytes = new Uint8Array((length + 7) >> 3);
  }

  /** Number of bits that are set. */
  get count(): number {
    return this.#count;
  }

  /** Returns true if bit `index` is set; false if `index` is out of range. */
  has(index: number): boolean {
    return (this.bytes[index >> 3]! & (0x80 >> (index & 7))) !== 0;
  }

  /** Sets bit `index`. Returns true if it was clear before. */
  set(index: number): boolean {
    if (index < 0 || index >= this.length || this.has(index)) return false;
    this.bytes[index >> 3]! |= 0x80 >> (index & 7);
    this.#count++;
    return true;
  }

  /** Clears bit `index`. Returns true if it was set before. */
  clear(index: number): boolean {
    if (index < 0 || index >= this.length || !this.has(index)) return false;
    this.bytes[index >> 3]! &= ~(0x80 >> (index & 7));
    this.#count--;
    return true;
  }

  setAll(): void {
    for (let i = 0; i < this.bytes.length; i++) this.bytes[i] = 0xff;
    const spare = this.bytes.length * 8 - this.length;
    if (spare > 0) this.bytes[this.bytes.length - 1] = (0xff << spare) & 0xff;
    this.#count = this.length;
  }

  clearAll(): void {
    this.bytes.fill(0);
    this.#count = 0;
  }

  /** Replaces all bits with a `bitfield` message's payload. Returns false, and changes nothing, if its length is wrong or a spare
   * bit is set (BEP 3). */
  load(wire: Uint8Array): boolean {
    if (wire.length !== this.bytes.length) return false;
    const spare = this.bytes.length * 8 - this.length;
    if (spare > 0 && (wire[wire.length - 1]! & ((1 << spare) - 1)) !== 0) return false;
    this.bytes.set(wire);
    let count = 0;
    for (let byte of wire) for (; byte !== 0; byte &= byte - 1) count++;
    this.#count = count;
    return true;
  }
}
