import { readFile } from "node:fs/promises";
import type { RandomAccess } from "../../src/base/byte-source.ts";
import type { ByteRange } from "../../src/base/range.ts";

/** A file in memory that counts the bytes read from it. */
export class CountedFile implements RandomAccess {
  readonly size: number;
  readonly #bytes: Uint8Array;
  /** Blocks of 64 KiB that were read. */
  readonly #touched = new Set<number>();
  reads = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.size = bytes.length;
  }

  static async open(path: string): Promise<CountedFile> {
    return new CountedFile(await readFile(path));
  }

  /** How many different bytes were read since the last call, in blocks of 64 KiB. */
  takeBytesRead(): number {
    const bytes = this.#touched.size << 16;
    this.#touched.clear();
    return bytes;
  }

  async read(range: ByteRange): Promise<Uint8Array<ArrayBuffer>> {
    if (range.start < 0 || range.end > this.size || range.start > range.end) {
      throw new RangeError(`${range.start}–${range.end} of ${this.size}`);
    }
    this.reads++;
    for (let block = range.start >> 16; block << 16 < range.end; block++) this.#touched.add(block);
    return new Uint8Array(this.#bytes.subarray(range.start, range.end));
  }
}
