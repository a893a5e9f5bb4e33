import { latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/** Limits and strictness of a decoder. */
export interface BencodeLimits {
  /** Maximum nesting of containers; default 100, as in libtorrent. */
  readonly maxDepth?: number;
  /** Maximum number of keys and values; by default 4096 plus one for each four bytes, enough for the densest real file lists. */
  readonly maxTokens?: number;
  /** Accepts unsorted (never repeated) keys. Only for data that is not hashed: some trackers and clients do not sort keys. */
  readonly lenientKeyOrder?: boolean;
  /** Accepts what libtorrent accepts: unsorted and repeated keys (the first one counts), leading zeros, integers of 64 bits. Only for
   * data whose bytes a hash protects, so that no two programs can disagree about its identity. */
  readonly isTolerant?: boolean;
}

/** The positions of all tokens of a checked input. A key is a token before the token of its value; the end of a container is a
 * token, too. */
export interface BencodeTape {
  readonly bytes: Uint8Array;
  /** Offset of each token. */
  readonly starts: Uint32Array;
  /** For each token, the token after it and its contents. */
  readonly nexts: Uint32Array;
}

const MAX_DEPTH = 100;
/** Absolute limit of the default for `maxTokens` (libtorrent: the same). */
const MAX_TOKENS = 3_000_000;
/** In tolerant mode; more digits are no integer of any other program. */
const MAX_INT64 = 2 ** 64;
const FORMAT = "bencode";
const [COLON, ZERO, NINE, MINUS, D, E, I, L] = [0x3a, 0x30, 0x39, 0x2d, 0x64, 0x65, 0x69, 0x6c];

/** Checks one value at the start of `bytes` (BEP 3): sorted unique keys, no leading zeros, no negative zero. With `isWhole`, bytes
 * after the value are an error. Returns the token positions and the offset after the value. Throws `DecodeError`. */
export function scanBencode(
  bytes: Uint8Array,
  limits: BencodeLimits,
  isWhole: boolean,
): { tape: BencodeTape; end: number } {
  const scanner = new Scanner(bytes, limits);
  const at = scanner.scan();
  if (isWhole && at !== bytes.length) {
    throw new DecodeError(FORMAT, at, `${bytes.length - at} bytes after the end of the value`);
  }
  return { tape: scanner.tape(), end: at };
}

/** An open container. */
interface Frame {
  readonly token: number;
  readonly isDict: boolean;
  /** In a dictionary: the next token is a value, not a key. */
  isValueNext: boolean;
  lastKeyStart: number;
  lastKeyEnd: number;
  /** All keys so far, if keys may be unsorted. */
  keys: Set<string> | undefined;
}

/** Scans without recursion, so that nesting cannot overflow the call stack. */
class Scanner {
  readonly #bytes: Uint8Array;
  readonly #maxDepth: number;
  readonly #maxTokens: number;
  readonly #isLenient: boolean;
  readonly #isTolerant: boolean;
  #starts = new Uint32Array(64);
  #nexts = new Uint32Array(64);
  #count = 0;
  /** Keys and values; container ends do not count. */
  #tokens = 0;
  #at = 0;

  constructor(bytes: Uint8Array, limits: BencodeLimits) {
    this.#bytes = bytes;
    this.#maxDepth = limits.maxDepth ?? MAX_DEPTH;
    this.#maxTokens = limits.maxTokens ?? Math.min(MAX_TOKENS, 4096 + Math.floor(bytes.length / 4));
    this.#isLenient = limits.lenientKeyOrder ?? false;
    this.#isTolerant = limits.isTolerant ?? false;
  }

  tape(): BencodeTape {
    return {
      bytes: this.#bytes,
      starts: this.#starts.subarray(0, this.#count),
      nexts: this.#nexts.subarray(0, this.#count),
    };
  }

  /** Scans one value; returns the offset after it. */
  scan(): number {
    const bytes = this.#bytes;
    const stack: Frame[] = [];
    let top: Frame | undefined;
    do {
      const at = this.#at;
      const byte = bytes[at];
      if (byte === undefined) throw new DecodeError(FORMAT, at, "the input ends inside a value");
      if (byte === E && top) {
        if (top.isValueNext) throw new DecodeError(FORMAT, at, "key without a value");
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
    frame.isValueNext = true;
    if (this.#isTolerant) return;
    const end = this.#at;
    const order = frame.lastKeyEnd < 0 ? 1 : this.#compare(start, end, frame.lastKeyStart, frame.lastKeyEnd);
    if (order === 0) throw new DecodeError(FORMAT, at, "duplicate key");
    if (order < 0 && !this.#isLenient) throw new DecodeError(FORMAT, at, "keys are not sorted");
    if (this.#isLenient) {
      const key = latin1Text(this.#bytes.subarray(start, end));
      frame.keys ??= new Set();
      if (frame.keys.has(key)) throw new DecodeError(FORMAT, at, "duplicate key");
      frame.keys.add(key);
    }
    frame.lastKeyStart = start;
    frame.lastKeyEnd = end;
  }

  /** Compares two keys by raw bytes (BEP 3); a prefix sorts before the longer key. */
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
    const max = this.#isTolerant ? MAX_INT64 : Number.MAX_SAFE_INTEGER;
    let at = first;
    let value = 0;
    for (let byte = bytes[at]; byte !== undefined && byte >= ZERO! && byte <= NINE!; byte = bytes[++at]) {
      value = value * 10 + (byte - ZERO!);
      if (value > max) throw new DecodeError(FORMAT, start, `integer above 2^${this.#isTolerant ? 64 : 53}`);
    }
    if (at === first || bytes[at] !== E)
      throw new DecodeError(FORMAT, at, "expected digits and `e` of an integer");
    if (bytes[first] === ZERO && (at > first + 1 || isNegative) && !this.#isTolerant) {
      throw new DecodeError(FORMAT, start, "integer with a leading zero, or negative zero");
    }
    this.#at = at + 1;
  }

  /** Skips a string; returns the offset of its content, which ends at the scanner's new position. */
  #string(): number {
    const bytes = this.#bytes;
    const start = this.#at;
    let at = start;
    let length = 0;
    for (let byte = bytes[at]; byte !== undefined && byte >= ZERO! && byte <= NINE!; byte = bytes[++at]) {
      length = length * 10 + (byte - ZERO!);
      if (length > bytes.length) throw new DecodeError(FORMAT, start, "string longer than the input");
    }
    if (at === start) throw new DecodeError(FORMAT, at, "expected a value");
    if (bytes[at] !== COLON) throw new DecodeError(FORMAT, at, "expected `:` after a string length");
    if (bytes[start] === ZERO && at > start + 1 && !this.#isTolerant)
      throw new DecodeError(FORMAT, start, "string length with a leading zero");
    if (at + 1 + length > bytes.length) throw new DecodeError(FORMAT, start, "string longer than the input");
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
