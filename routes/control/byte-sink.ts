/** The first memory of what announces no length. */
const FIRST_BYTES = 4096;

/** Gathers bytes up to a limit, in memory that grows by doubling. */
export class ByteSink {
  readonly limitBytes: number;
  #bytes: Uint8Array<ArrayBuffer>;
  #length = 0;

  /** `expectedBytes`: how many will probably come; 0 where nobody knows. */
  constructor(limitBytes: number, expectedBytes: number) {
    this.limitBytes = limitBytes;
    this.#bytes = new Uint8Array(Math.max(0, Math.min(limitBytes, expectedBytes)));
  }

  /** False, and nothing taken, where that would be more than the limit. */
  add(bytes: Uint8Array): boolean {
    const length = this.#length + bytes.length;
    if (length > this.limitBytes) return false;
    if (length > this.#bytes.length) {
      const room = Math.min(this.limitBytes, Math.max(FIRST_BYTES, 2 * this.#bytes.length, length));
      const grown = new Uint8Array(room);
      grown.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length = length;
    return true;
  }

  /** What was gathered. Copied where much of the memory is empty, so that a small field does not hold a large buffer. */
  take(): Uint8Array<ArrayBuffer> {
    const whole = this.#bytes.subarray(0, this.#length);
    return this.#length < this.#bytes.length - this.#bytes.length / 8 ? whole.slice() : whole;
  }
}
