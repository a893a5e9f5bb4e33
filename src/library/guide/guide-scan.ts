import { DecodeError } from "../../base/errors.ts";
import type { OpenFile } from "../../runtime/contract.ts";
import { foldText } from "../item-names.ts";

/** Bytes of one read, about a millisecond of work. */
const BLOCK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;
const DECODER = new TextDecoder();

/** The blocks of a file of lines in which lines of interest start. */
export class MarkedBlocks {
  readonly #isMarked: Uint8Array;
  readonly #length: number;

  /** @param length size of the file in bytes */
  constructor(length: number) {
    this.#isMarked = new Uint8Array(Math.ceil(length / BLOCK_BYTES));
    this.#length = length;
  }

  /** Marks the block that contains the byte at `offset`. */
  mark(offset: number): void {
    this.#isMarked[Math.floor(offset / BLOCK_BYTES)] = 1;
  }

  /**
   * Reads the marked blocks in order and yields, for each, the lines that start in it and contain the folded text `part`, also in
   * escaped form. An empty array is yielded for a block without such lines, so that the caller can stop between any two reads.
   */
  async *linesWith(part: string, file: OpenFile): AsyncGenerator<Uint8Array[], void> {
    // The lines are JSON.
    const escaped = JSON.stringify(part).slice(1, -1);
    const contains = (bytes: Uint8Array) => foldText(DECODER.decode(bytes)).includes(escaped);
    for (let block = 0; block < this.#isMarked.length; block++) {
      if (this.#isMarked[block] === 0) continue;
      const bytes = await this.#lines(block, file);
      yield contains(bytes) ? linesOf(bytes).filter(contains) : [];
    }
  }

  /** Returns the lines that start in a block. */
  async #lines(block: number, file: OpenFile): Promise<Uint8Array> {
    // The byte before the block shows whether a line starts at its first byte.
    const start = Math.max(0, block * BLOCK_BYTES - 1);
    const end = Math.min((block + 1) * BLOCK_BYTES, this.#length);
    const bytes = await this.#read(start, end, file);
    const from = block === 0 ? 0 : bytes.indexOf(NEWLINE) + 1;
    const isComplete = bytes.at(-1) === NEWLINE;
    if ((block > 0 && from === 0) || isComplete) return bytes.subarray(from);
    // A line is shorter than a block.
    const more = await this.#read(end, Math.min(end + BLOCK_BYTES, this.#length), file);
    const rest = more.indexOf(NEWLINE) + 1;
    if (rest === 0) throw new DecodeError("guide file", end, "a line is too long");
    const lines = new Uint8Array(bytes.length - from + rest);
    lines.set(bytes.subarray(from));
    lines.set(more.subarray(0, rest), bytes.length - from);
    return lines;
  }

  async #read(from: number, to: number, file: OpenFile): Promise<Uint8Array> {
    const bytes = new Uint8Array(to - from);
    await file.read(from, bytes);
    return bytes;
  }
}

/** Splits bytes after each newline; the lines do not include it. */
function linesOf(bytes: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = [];
  let at = 0;
  for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, at)) {
    lines.push(bytes.subarray(at, end));
    at = end + 1;
  }
  return lines;
}
