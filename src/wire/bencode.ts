import { latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import type { ByteRange } from "../base/range.ts";

/** A value of the bencoding (BEP 3). Byte strings are views on the input; keys are Latin-1 text, one unit a byte. */
export type BencodeValue = number | Uint8Array | BencodeList | BencodeDict;
export type BencodeList = readonly BencodeValue[];
export type BencodeDict = ReadonlyMap<string, BencodeValue>;

/** How much a decoder bears, and how strict it is. */
export interface BencodeLimits {
  /** Containers within containers (libtorrent: 100). */
  readonly maxDepth?: number;
  /** Keys and values in all. By default one for each four bytes (the densest real file lists need that) and some
   * thousands for small inputs: a value costs far more memory than the two bytes that can announce it. */
  readonly maxTokens?: number;
  /** Bears unsorted keys, never repeated ones. Only for what is not hashed: some trackers and clients in the field
   * write their dictionaries in the order of their source code. */
  readonly lenientKeyOrder?: boolean;
}

const MAX_DEPTH = 100;
/** No input of ours has more (libtorrent's limit too). */
const MAX_TOKENS = 3_000_000;
const FORMAT = "bencode";
const [COLON, ZERO, NINE, MINUS, D, E, I, L] = [0x3a, 0x30, 0x39, 0x2d, 0x64, 0x65, 0x69, 0x6c];
const EMPTY_BYTES = new Uint8Array(0);

/** Reads exactly one value, strictly: sorted unique keys, no leading zeros, no negative zero, nothing after it.
 * Throws {@link DecodeError}. */
export function decodeBencode(bytes: Uint8Array, limits: BencodeLimits = {}): BencodeValue {
  return finished(bytes, read(bytes, limits, undefined));
}

/** Reads one value at the start of `bytes`; `end` is where it ends. For a dictionary with raw bytes after it (BEP 9). */
export function decodeBencodePrefix(
  bytes: Uint8Array,
  limits: BencodeLimits = {},
): { value: BencodeValue; end: number } {
  return read(bytes, limits, undefined);
}

/** Reads one dictionary, and tells where the value of each of its own keys lies, so that it can be hashed as it came. */
export function decodeBencodeDict(
  bytes: Uint8Array,
  limits: BencodeLimits = {},
): { dict: BencodeDict; spans: ReadonlyMap<string, ByteRange> } {
  const spans = new Map<string, ByteRange>();
  const dict = dictOf(finished(bytes, read(bytes, limits, spans)));
  if (!dict) throw new DecodeError(FORMAT, 0, "expected a dictionary");
  return { dict, spans };
}

/** Where the value of `key` of the outermost dictionary lies; undefined where there is none. */
export function bencodeSpan(
  bytes: Uint8Array,
  key: string,
  limits: BencodeLimits = {},
): ByteRange | undefined {
  return decodeBencodeDict(bytes, limits).spans.get(key);
}

/** `value` as a dictionary, or undefined where it is none. */
export function dictOf(value: BencodeValue | undefined): BencodeDict | undefined {
  return value instanceof Map ? value : undefined;
}

/** `value` as a list, or undefined where it is none. */
export function listOf(value: BencodeValue | undefined): BencodeList | undefined {
  return Array.isArray(value) ? value : undefined;
}

/** `value` as bytes, or undefined where it is none. */
export function bytesOf(value: BencodeValue | undefined): Uint8Array | undefined {
  return value instanceof Uint8Array ? value : undefined;
}

/** `value` as a whole number, or undefined where it is none. */
export function integerOf(value: BencodeValue | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** A container that is being read. */
interface Frame {
  readonly list: BencodeValue[] | undefined;
  readonly dict: Map<string, BencodeValue> | undefined;
  /** The key whose value comes next. */
  key: string | undefined;
  lastKey: string | undefined;
  valueStart: number;
}

function finished(bytes: Uint8Array, { value, end }: { value: BencodeValue; end: number }): BencodeValue {
  if (end !== bytes.length) throw new DecodeError(FORMAT, end, `${bytes.length - end} bytes after the value`);
  return value;
}

/** One loop and a stack of its own: nesting cannot overflow the call stack. */
function read(
  bytes: Uint8Array,
  limits: BencodeLimits,
  spans: Map<string, ByteRange> | undefined,
): { value: BencodeValue; end: number } {
  const maxDepth = limits.maxDepth ?? MAX_DEPTH;
  const maxTokens = limits.maxTokens ?? Math.min(MAX_TOKENS, 4096 + Math.floor(bytes.length / 4));
  const stack: Frame[] = [];
  const cursor = { at: 0 };
  let tokens = 0;
  for (;;) {
    const at = cursor.at;
    const top = stack[stack.length - 1];
    const byte = bytes[at];
    let value: BencodeValue;
    if (byte === undefined) throw new DecodeError(FORMAT, at, "the input ends within a value");
    if (byte === E && top) {
      if (top.key !== undefined) throw new DecodeError(FORMAT, at, "a key without a value");
      cursor.at++;
      stack.pop();
      value = top.list ?? top.dict!;
    } else {
      if (++tokens > maxTokens) throw new DecodeError(FORMAT, at, `more than ${maxTokens} keys and values`);
      if (top?.dict && top.key === undefined) {
        readKey(bytes, cursor, top, limits.lenientKeyOrder ?? false);
        continue;
      }
      if (byte === L || byte === D) {
        if (stack.length >= maxDepth) throw new DecodeError(FORMAT, at, `nested deeper than ${maxDepth}`);
        stack.push(newFrame(byte === D));
        cursor.at++;
        continue;
      }
      value = byte === I ? readInteger(bytes, cursor) : readString(bytes, cursor);
    }
    const parent = stack[stack.length - 1];
    if (!parent) return { value, end: cursor.at };
    if (parent.list) parent.list.push(value);
    else {
      parent.dict!.set(parent.key!, value);
      if (stack.length === 1) spans?.set(parent.key!, { start: parent.valueStart, end: cursor.at });
      parent.key = undefined;
    }
  }
}

function newFrame(isDict: boolean): Frame {
  return {
    list: isDict ? undefined : [],
    dict: isDict ? new Map() : undefined,
    key: undefined,
    lastKey: undefined,
    valueStart: 0,
  };
}

function readKey(bytes: Uint8Array, cursor: { at: number }, frame: Frame, lenientKeyOrder: boolean): void {
  const at = cursor.at;
  const key = latin1Text(readString(bytes, cursor));
  // Latin-1 text compares by unit, that is by byte: the order of BEP 3.
  if (frame.lastKey !== undefined && key <= frame.lastKey && (!lenientKeyOrder || frame.dict!.has(key))) {
    throw new DecodeError(FORMAT, at, key === frame.lastKey ? "a key comes twice" : "keys are not sorted");
  }
  if (lenientKeyOrder && frame.dict!.has(key)) throw new DecodeError(FORMAT, at, "a key comes twice");
  frame.lastKey = key;
  frame.key = key;
  frame.valueStart = cursor.at;
}

function readInteger(bytes: Uint8Array, cursor: { at: number }): number {
  const start = cursor.at;
  let at = start + 1;
  const isNegative = bytes[at] === MINUS;
  if (isNegative) at++;
  const first = at;
  let value = 0;
  for (let byte = bytes[at]; byte !== undefined && byte >= ZERO && byte <= NINE; byte = bytes[++at]) {
    value = value * 10 + (byte - ZERO);
    if (value > Number.MAX_SAFE_INTEGER) throw new DecodeError(FORMAT, start, "an integer beyond 2^53");
  }
  if (at === first || bytes[at] !== E)
    throw new DecodeError(FORMAT, at, "expected digits and `e` in an integer");
  const hasLeadingZero = bytes[first] === ZERO && (at > first + 1 || isNegative);
  if (hasLeadingZero) throw new DecodeError(FORMAT, start, "an integer with a leading or negative zero");
  cursor.at = at + 1;
  return isNegative ? -value : value;
}

function readString(bytes: Uint8Array, cursor: { at: number }): Uint8Array {
  const start = cursor.at;
  let at = start;
  let length = 0;
  for (let byte = bytes[at]; byte !== undefined && byte >= ZERO && byte <= NINE; byte = bytes[++at]) {
    length = length * 10 + (byte - ZERO);
    if (length > bytes.length) throw new DecodeError(FORMAT, start, "a string longer than the input");
  }
  if (at === start) throw new DecodeError(FORMAT, at, "expected a value");
  if (bytes[at] !== COLON) throw new DecodeError(FORMAT, at, "expected `:` after the length of a string");
  if (bytes[start] === ZERO && at > start + 1)
    throw new DecodeError(FORMAT, start, "a length with a leading zero");
  if (at + 1 + length > bytes.length) throw new DecodeError(FORMAT, start, "a string longer than the input");
  cursor.at = at + 1 + length;
  return length === 0 ? EMPTY_BYTES : bytes.subarray(at + 1, cursor.at);
}
