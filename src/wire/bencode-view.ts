import { latin1Text } from "../base/bytes.ts";
import type { ByteRange } from "../base/range.ts";
import { type BencodeLimits, type BencodeTape, scanBencode } from "./bencode-scan.ts";

const [COLON, ZERO, MINUS, D, I, L] = [0x3a, 0x30, 0x2d, 0x64, 0x69, 0x6c];

/** A lazy view of a checked bencoded value. Values are read in place and nothing is built in advance, so a hostile input costs
 * little more memory than its own bytes. */
export class BencodeView {
  readonly #tape: BencodeTape;
  readonly #token: number;

  constructor(tape: BencodeTape, token = 0) {
    this.#tape = tape;
    this.#token = token;
  }

  /** The byte range of the value in the input. */
  get range(): ByteRange {
    const { bytes } = this.#tape;
    const start = this.#start();
    if (this.isList || this.isDict)
      return { start, end: this.#tape.starts[this.#tape.nexts[this.#token]! - 1]! + 1 };
    if (bytes[start] === I) return { start, end: bytes.indexOf(0x65, start) + 1 };
    return { start, end: stringRange(bytes, start).end };
  }

  get isList(): boolean {
    return this.#tape.bytes[this.#start()] === L;
  }

  get isDict(): boolean {
    return this.#tape.bytes[this.#start()] === D;
  }

  /** Returns the value if it is an integer, otherwise undefined. */
  integer(): number | undefined {
    const { bytes } = this.#tape;
    const start = this.#start();
    if (bytes[start] !== I) return undefined;
    const isNegative = bytes[start + 1] === MINUS;
    let value = 0;
    for (let at = start + (isNegative ? 2 : 1); bytes[at] !== 0x65; at++)
      value = value * 10 + (bytes[at]! - ZERO!);
    return isNegative ? 0 - value : value;
  }

  /** Returns the value if it is a byte string (a view of the input), otherwise undefined. */
  bytes(): Uint8Array | undefined {
    const { bytes } = this.#tape;
    const start = this.#start();
    const lead = bytes[start];
    if (lead === I || lead === L || lead === D) return undefined;
    const range = stringRange(bytes, start);
    return bytes.subarray(range.start, range.end);
  }

  /** Iterates over the values of a list; empty if the value is not a list. */
  *items(): Generator<BencodeView, void, undefined> {
    if (!this.isList) return;
    const end = this.#tape.nexts[this.#token]! - 1;
    for (let token = this.#token + 1; token < end; token = this.#tape.nexts[token]!) {
      yield new BencodeView(this.#tape, token);
    }
  }

  /** Returns the number of values in a list; 0 if the value is not a list. */
  itemCount(): number {
    if (!this.isList) return 0;
    const end = this.#tape.nexts[this.#token]! - 1;
    let count = 0;
    for (let token = this.#token + 1; token < end; token = this.#tape.nexts[token]!) count++;
    return count;
  }

  /** Iterates over keys (as Latin-1) and values of a dictionary; empty if the value is not a dictionary. */
  *entries(): Generator<readonly [key: string, value: BencodeView], void, undefined> {
    if (!this.isDict) return;
    const { bytes, starts, nexts } = this.#tape;
    const end = nexts[this.#token]! - 1;
    for (let token = this.#token + 1; token < end; token = nexts[token + 1]!) {
      const { start, end } = stringRange(bytes, starts[token]!);
      yield [latin1Text(bytes.subarray(start, end)), new BencodeView(this.#tape, token + 1)];
    }
  }

  /** Returns the value of an ASCII key; undefined if the key is absent or the value is not a dictionary. */
  get(key: string): BencodeView | undefined {
    if (!this.isDict) return undefined;
    const { bytes, starts, nexts } = this.#tape;
    const end = nexts[this.#token]! - 1;
    for (let token = this.#token + 1; token < end; token = nexts[token + 1]!) {
      if (isString(bytes, starts[token]!, key)) return new BencodeView(this.#tape, token + 1);
    }
    return undefined;
  }

  #start(): number {
    return this.#tape.starts[this.#token]!;
  }
}

/** Checks exactly one value, as strictly as `decodeBencode`, and returns a view of it. Throws `DecodeError`. */
export function viewBencode(bytes: Uint8Array, limits: BencodeLimits = {}): BencodeView {
  return new BencodeView(scanBencode(bytes, limits, true).tape);
}

/** Like `viewBencode`, for one value at the start of `bytes`: bytes after it are ignored. */
export function viewBencodePrefix(bytes: Uint8Array, limits: BencodeLimits = {}): BencodeView {
  return new BencodeView(scanBencode(bytes, limits, false).tape);
}

/** Returns the content range of the checked string whose length prefix starts at `at`. */
function stringRange(bytes: Uint8Array, at: number): ByteRange {
  let length = 0;
  for (; bytes[at] !== COLON; at++) length = length * 10 + (bytes[at]! - ZERO!);
  return { start: at + 1, end: at + 1 + length };
}

function isString(bytes: Uint8Array, at: number, text: string): boolean {
  const { start, end } = stringRange(bytes, at);
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text.charCodeAt(i)) return false;
  return true;
}
