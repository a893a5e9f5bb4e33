import { DecodeError } from "../base/errors.ts";

/** Reads bits from the high end, for headers of video and audio. Reading past the end throws {@link DecodeError}. */
export class BitReader {
  readonly #bytes: Uint8Array;
  readonly #format: string;
  /** The next bit, counted from the start. */
  position = 0;

  constructor(bytes: Uint8Array, format: string) {
    this.#bytes = bytes;
    this.#format = format;
  }

  /** How many bits are left. */
  get left(): number {
    return this.#bytes.length * 8 - this.position;
  }

  /** The next `count` bits (0 to 32) as an unsigned number. */
  bits(count: number): number {
    if (count > this.left)
      throw new DecodeError(this.#format, this.#bytes.length, `wanted ${count} more bits`);
    let value = 0;
    let wanted = count;
    while (wanted > 0) {
      const byte = this.#bytes[this.position >> 3]!;
      const free = 8 - (this.position & 7);
      const take = Math.min(free, wanted);
      value = value * 2 ** take + ((byte >> (free - take)) & ((1 << take) - 1));
      this.position += take;
      wanted -= take;
    }
    return value;
  }

  /** The next bit. */
  flag(): boolean {
    return this.bits(1) === 1;
  }

  /** Passes over `count` bits. */
  skip(count: number): void {
    if (count > this.left)
      throw new DecodeError(this.#format, this.#bytes.length, `wanted ${count} more bits`);
    this.position += count;
  }

  /** An unsigned Exp-Golomb number, `ue(v)` (ISO 14496-10 9.1). */
  ue(): number {
    let zeros = 0;
    while (!this.flag()) {
      if (++zeros > 32)
        throw new DecodeError(this.#format, this.position >> 3, "an Exp-Golomb number over 32 bits");
    }
    return 2 ** zeros - 1 + this.bits(zeros);
  }

  /** A signed Exp-Golomb number, `se(v)`. */
  se(): number {
    const code = this.ue();
    return code % 2 === 0 ? -code / 2 : (code + 1) / 2;
  }
}
