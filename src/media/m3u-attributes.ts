import { lineText, type M3uLine } from "./m3u-line.ts";

/** Of one entry; nobody has more than twenty. */
export const MAX_M3U_ATTRIBUTES = 64;
/** A longer value is left out: pictures within an attribute, mostly. Half of it would be of no use. */
export const MAX_M3U_VALUE_BYTES = 8192;
const MAX_NAME_BYTES = 64;

const QUOTE = 0x22;
const APOSTROPHE = 0x27;
const COMMA = 0x2c;
const EQUALS = 0x3d;

/** Which bytes may be in an attribute's name: letters, digits, `-`, `_`, `.`. */
const IS_NAME = Array.from({ length: 256 }, (_, byte) => /^[\w.-]$/.test(String.fromCharCode(byte)));

/** What stands on an `#EXTINF` or `#EXTM3U` line behind the tag. */
export interface M3uTagLine {
  /** Names in lower case; where one is there twice, the first counts. */
  readonly attributes: Map<string, string>;
  /** Where the title begins in the line's bytes: at its end where there is none. */
  readonly titleAt: number;
}

/**
 * Reads `name="value"` from `at` on, up to the comma in front of the title. Lists are written by hand and by
 * careless programs: values in single quotes or none, quotes within quotes, quotes that never close, and a comma
 * between the length and the attributes are all read as they were meant. Goes over the line once, but for each quote
 * that does not close, whose number is limited with that of the attributes.
 */
export function readM3uAttributes(line: M3uLine, at: number): M3uTagLine {
  const attributes = new Map<string, string>();
  let looseAt: number | undefined;
  let isLoose = false;
  let cursor = at;
  for (let count = 0; ; ) {
    const mayBeMore = count < MAX_M3U_ATTRIBUTES;
    cursor = skipSpaces(line, cursor);
    if (cursor >= line.end) return { attributes, titleAt: looseAt ?? line.end };
    if (line.bytes[cursor] === COMMA) {
      if (mayBeMore && startsQuoted(line, skipSpaces(line, cursor + 1))) {
        cursor++;
        continue;
      }
      return { attributes, titleAt: cursor + 1 };
    }
    const equals = mayBeMore ? equalsAfterName(line, cursor) : undefined;
    if (equals === undefined) {
      // Where no comma comes any more, the title begins here.
      if (!isLoose) looseAt = cursor;
      isLoose = true;
      cursor = endOfWord(line, cursor);
      continue;
    }
    isLoose = false;
    looseAt = undefined;
    count++;
    const name = lineText(line, cursor, equals).toLowerCase();
    const value = readValue(line, equals + 1);
    if (value.to - value.from <= MAX_M3U_VALUE_BYTES && !attributes.has(name))
      attributes.set(name, lineText(line, value.from, value.to).trim());
    cursor = value.next;
  }
}

interface Value {
  readonly from: number;
  readonly to: number;
  /** Where reading goes on. */
  readonly next: number;
}

function readValue(line: M3uLine, at: number): Value {
  const quoteAt = skipSpaces(line, at);
  const opening = quoteAt < line.end ? line.bytes[quoteAt] : undefined;
  if (opening === QUOTE || opening === APOSTROPHE) return readQuoted(line, quoteAt + 1, opening);
  // Without quotes: to the comma, or to the next name.
  let to = at;
  for (let cursor = at; cursor < line.end && line.bytes[cursor] !== COMMA; ) {
    to = endOfWord(line, cursor);
    cursor = skipSpaces(line, to);
    if (cursor < line.end && equalsAfterName(line, cursor) !== undefined) break;
  }
  return { from: at, to, next: to };
}

function readQuoted(line: M3uLine, from: number, quote: number): Value {
  const { bytes, end } = line;
  // Where it ends if nothing closes it properly: at a comma, or at a quote with a space behind it.
  let fallback: Value | undefined;
  for (let at = from; at < end; at++) {
    if (bytes[at] === COMMA) fallback ??= { from, to: at, next: at };
    if (bytes[at] !== quote) continue;
    // A quote that opens the next value: this one was never closed.
    const nextName = nameBefore(line, at, from);
    if (nextName !== undefined) return { from, to: nextName, next: nextName };
    if (closes(line, at + 1)) return { from, to: at, next: at + 1 };
    if (bytes[at + 1]! <= 0x20) fallback ??= { from, to: at, next: at + 1 };
  }
  return fallback ?? { from, to: end, next: end };
}

/** Whether what follows a quote is what follows a value. A quote within a value is followed by more of it. */
function closes(line: M3uLine, at: number): boolean {
  const next = skipSpaces(line, at);
  return next >= line.end || line.bytes[next] === COMMA || equalsAfterName(line, next) !== undefined;
}

/** Where the name begins that stands with its `=` right before the quote at `at`, a space before it. */
function nameBefore({ bytes }: M3uLine, at: number, from: number): number | undefined {
  if (bytes[at - 1] !== EQUALS) return undefined;
  let start = at - 1;
  while (start > from && at - start <= MAX_NAME_BYTES && IS_NAME[bytes[start - 1]!]) start--;
  return start < at - 1 && start > from && bytes[start - 1]! <= 0x20 ? start : undefined;
}

/** Where the `=` is of the name that begins at `at`, or undefined where none does. */
function equalsAfterName(line: M3uLine, at: number): number | undefined {
  const { bytes, end } = line;
  const limit = Math.min(end, at + MAX_NAME_BYTES);
  let cursor = at;
  while (cursor < limit && IS_NAME[bytes[cursor]!]) cursor++;
  return cursor > at && cursor < end && bytes[cursor] === EQUALS ? cursor : undefined;
}

/** Whether `name="` begins at `at`. */
function startsQuoted(line: M3uLine, at: number): boolean {
  const equals = equalsAfterName(line, at);
  return equals !== undefined && line.bytes[equals + 1] === QUOTE;
}

function skipSpaces({ bytes, end }: M3uLine, at: number): number {
  let cursor = at;
  while (cursor < end && bytes[cursor]! <= 0x20) cursor++;
  return cursor;
}

/** To the next space or comma. */
function endOfWord({ bytes, end }: M3uLine, at: number): number {
  let cursor = at;
  while (cursor < end && bytes[cursor]! > 0x20 && bytes[cursor] !== COMMA) cursor++;
  return cursor;
}
