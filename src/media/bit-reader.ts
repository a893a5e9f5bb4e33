import { DecodeError } from "../base/errors.ts";

/** Reads bits, most significant first, from video and audio headers. Reading past the end throws {@link DecodeError}. */
export class BitReader {
  readonly #bytes: Uint8Array;
  readonly #format: string;
  /** Position of the next bit. */
  position = 0;

  constructor(bytes: Uint8Array, format: string) {
    this.#bytes = bytes;
    this.#format = format;
  }

  /** Number of unread bits. */
  get left(): number {
    return this.#bytes.length * 8 - this.position;
  }

  /** Reads `count` bits (0 to 32) as an unsigned number. */
  bits(count: number): number {
    if (count > this.left)
      throw new DecodeError(this.#format, this.#bytes.length, `truncated: ${count} more bits expected`);
    let value = 0;
    let remaining = count;
    while (remaining > 0) {
      const byte = this.#bytes[this.position >> 3]!;
      const free = 8 - (this.position & 7);
      const take = Math.min(free, remaining);
      value = value * 2 ** take + ((byte >> (free - take)) & ((1 << take) - 1));
      this.position += take;
      remaining -= take;
    }
    return value;
  }

  /** Reads one bit. */
  flag(): boolean {
    return this.bits(1) === 1;
  }

  /** Skips `count` bits. */
  skip(count: number): void {
    if (count > this.left)
      throw new DecodeError(this.#format, this.#bytes.length, `truncated: ${count} more bits expected`);
    this.position += count;
  }

  /** Reads an unsigned Exp-Golomb number, `ue(v)` (ISO 14496-10 9.1). */
  ue(): number {
    let zeros = 0;
    while (!this.flag()) {
      if (++zeros > 32)
        throw new DecodeError(this.#format, this.position >> 3, "an Exp-Golomb number has more than 32 bits");
    }
    return 2 ** zeros - 1 + this.bits(zeros);
  }

  /** Reads a signed Exp-Golomb number, `se(v)` (ISO 14496-10 9.1.1). */
  se(): number {
    const code = this.ue();
    return code % 2 === 0 ? -code / 2 : (code + 1) / 2;
  }
}
