import { latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/** How much a decoder bears, and how strict it is. */
export interface BencodeLimits {
  /** Containers within containers (libtorrent: 100). */
  readonly maxDepth?: number;
  /** Keys and values in all; by default one for each four bytes and some thousands for small inputs. The densest real
   * lists of files need that. */
  readonly maxTokens?: number;
  /** Bears unsorted keys, never repeated ones. Only for what is not hashed: some trackers and clients in the field
   * write their dictionaries in the order of their source code. */
  readonly lenientKeyOrder?: boolean;
}

/** Where every value of a checked input lies. Keys are values of their own, before theirs; the end of a container is
 * one too. */
export interface BencodeTape {
  readonly bytes: Uint8Array;
  /** The offset of each value. */
  readonly starts: Uint32Array;
  /** The token that follows each value with all it holds. */
  readonly nexts: Uint32Array;
}

const MAX_DEPTH = 100;
/** No input of ours has more (libtorrent's limit too). */
const MAX_TOKENS = 3_000_000;
const FORMAT = "bencode";
const [COLON, ZERO, NINE, MINUS, D, E, I, L] = [0x3a, 0x30, 0x39, 0x2d, 0x64, 0x65, 0x69, 0x6c];

/** Checks one value at the start of `bytes` (exactly one where `isWhole`): sorted unique keys, no leading zeros, no
 * negative zero. `end` is where it ends. Throws `DecodeError`. */
export function scanBencode(
  bytes: Uint8Array,
  limits: BencodeLimits,
  isWhole: boolean,
): { tape: BencodeTape; end: number } {
  const scanner = new Scanner(bytes, limits);
  const at = scanner.scan();
  if (isWhole && at !== bytes.length) {
    throw new DecodeError(FORMAT, at, `${bytes.length - at} bytes after the value`);
  }
  return { tape: scanner.tape(), end: at };
}

/** A container that is being read. */
interface Frame {
  readonly token: number;
  readonly isDict: boolean;
  /** In a dictionary: whether a value comes next, not a key. */
  isValueNext: boolean;
  lastKeyStart: number;
  lastKeyEnd: number;
  /** All keys so far, where they may come in any order. */
  keys: Set<string> | undefined;
}

/** One loop and a stack of its own: nesting cannot overflow the call stack. */
class Scanner {
  readonly #bytes: Uint8Array;
  readonly #maxDepth: number;
  readonly #maxTokens: number;
  readonly #isLenient: boolean;
  #starts = new Uint32Array(64);
  #nexts = new Uint32Array(64);
  #count = 0;
  /** Keys and values; ends of containers do not count. */
  #tokens = 0;
  #at = 0;

  constructor(bytes: Uint8Array, limits: BencodeLimits) {
    this.#bytes = bytes;
    this.#maxDepth = limits.maxDepth ?? MAX_DEPTH;
    this.#maxTokens = limits.maxTokens ?? Math.min(MAX_TOKENS, 4096 + Math.floor(bytes.length / 4));
    this.#isLenient = limits.lenientKeyOrder ?? false;
  }

  tape(): BencodeTape {
    return {
      bytes: this.#bytes,
      starts: this.#starts.subarray(0, this.#count),
      nexts: this.#nexts.subarray(0, this.#count),
    };
  }

  /** Reads one value; returns where it ends. */
  scan(): number {
    const bytes = this.#bytes;
    const stack: Frame[] = [];
    let top: Frame | undefined;
    do {
      const at = this.#at;
      const byte = bytes[at];
      if (byte === undefined) throw new DecodeError(FORMAT, at, "the input ends within a value");
      if (byte === E && top) {
        if (top.isValueNext) throw new DecodeError(FORMAT, at, "a key without a value");
        this.#push(at);
        this.#nexts[top.token] = this.#count;
        this.#at = at + 1;
        stack.pop();
        top = stack[stack.length - 1];
      } else {
        if (++this.#tokens > this.#maxTokens) {
          throw new DecodeError(FORMAT, at, `more than ${this.#maxTokens} keys and values`);
        }
        if (top?.isDict && !top.isValueNext) {
          this.#key(top);
          continue;
        }
        if (top) top.isValueNext = false;
        this.#push(at);
        if (byte === L || byte === D) {
          if (stack.length >= this.#maxDepth)
            throw new DecodeError(FORMAT, at, `nested deeper than ${this.#maxDepth}`);
          top = newFrame(this.#count - 1, byte === D);
          stack.push(top);
          this.#at = at + 1;
        } else if (byte === I) this.#integer();
        else this.#string();
      }
    } while (top);
    return this.#at;
  }

  #push(start: number): void {
    if (this.#count === this.#starts.length) {
      this.#starts = grown(this.#starts);
      this.#nexts = grown(this.#nexts);
    }
    this.#starts[this.#count] = start;
    this.#count++;
    this.#nexts[this.#count - 1] = this.#count;
  }

  #key(frame: Frame): void {
    const at = this.#at;
    this.#push(at);
    const start = this.#string();
    const end = this.#at;
    const order = frame.lastKeyEnd < 0 ? 1 : this.#compare(start, end, frame.lastKeyStart, frame.lastKeyEnd);
    if (order === 0) throw new DecodeError(FORMAT, at, "a key comes twice");
    if (order < 0 && !this.#isLenient) throw new DecodeError(FORMAT, at, "keys are not sorted");
    if (this.#isLenient) {
      const key = latin1Text(this.#bytes.subarray(start, end));
      frame.keys ??= new Set();
      if (frame.keys.has(key)) throw new DecodeError(FORMAT, at, "a key comes twice");
      frame.keys.add(key);
    }
    frame.lastKeyStart = start;
    frame.lastKeyEnd = end;
    frame.isValueNext = true;
  }

  /** Raw bytes decide (BEP 3); of two keys that begin alike the shorter comes first. */
  #compare(start: number, end: number, otherStart: number, otherEnd: number): number {
    const bytes = this.#bytes;
    const shared = Math.min(end - start, otherEnd - otherStart);
    for (let i = 0; i < shared; i++) {
      const difference = bytes[start + i]! - bytes[otherStart + i]!;
      if (difference !== 0) return difference;
    }
    return end - start - (otherEnd - otherStart);
  }

  #integer(): void {
    const bytes = this.#bytes;
    const start = this.#at;
    const isNegative = bytes[start + 1] === MINUS;
    const first = start + (isNegative ? 2 : 1);
    let at = first;
    let value = 0;
    for (let byte = bytes[at]; byte !== undefined && byte >= ZERO! && byte <= NINE!; byte = bytes[++at]) {
      value = value * 10 + (byte - ZERO!);
      if (value > Number.MAX_SAFE_INTEGER) throw new DecodeError(FORMAT, start, "an integer beyond 2^53");
    }
    if (at === first || bytes[at] !== E)
      throw new DecodeError(FORMAT, at, "expected digits and `e` in an integer");
    if (bytes[first] === ZERO && (at > first + 1 || isNegative)) {
      throw new DecodeError(FORMAT, start, "an integer with a leading or negative zero");
    }
    this.#at = at + 1;
  }

  /** Passes a string; returns where its content starts, which ends where the scanner then stands. */
  #string(): number {
    const bytes = this.#bytes;
    const start = this.#at;
    let at = start;
    let length = 0;
    for (let byte = bytes[at]; byte !== undefined && byte >= ZERO! && byte <= NINE!; byte = bytes[++at]) {
      length = length * 10 + (byte - ZERO!);
      if (length > bytes.length) throw new DecodeError(FORMAT, start, "a string longer than the input");
    }
    if (at === start) throw new DecodeError(FORMAT, at, "expected a value");
    if (bytes[at] !== COLON) throw new DecodeError(FORMAT, at, "expected `:` after the length of a string");
    if (bytes[start] === ZERO && at > start + 1)
      throw new DecodeError(FORMAT, start, "a length with a leading zero");
    if (at + 1 + length > bytes.length)
      throw new DecodeError(FORMAT, start, "a string longer than the input");
    this.#at = at + 1 + length;
    return at + 1;
  }
}

function newFrame(token: number, isDict: boolean): Frame {
  return { token, isDict, isValueNext: false, lastKeyStart: 0, lastKeyEnd: -1, keys: undefined };
}

function grown(words: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(words.length * 2);
  larger.set(words);
  return larger;
}
