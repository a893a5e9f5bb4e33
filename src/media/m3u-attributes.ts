import { lineText, type M3uLine } from "./m3u-line.ts";

/** Limit of attributes of an entry; real playlists have up to twenty. */
export const MAX_M3U_ATTRIBUTES = 64;
/** Longer values are dropped; most are embedded pictures. */
export const MAX_M3U_VALUE_BYTES = 8192;
const MAX_NAME_BYTES = 64;

const QUOTE = 0x22;
const APOSTROPHE = 0x27;
const COMMA = 0x2c;
const EQUALS = 0x3d;

/** Bytes allowed in an attribute name: letters, digits, `-`, `_`, `.`. */
const IS_NAME = Array.from({ length: 256 }, (_, byte) => /^[\w.-]$/.test(String.fromCharCode(byte)));

/** The content of an `#EXTINF` or `#EXTM3U` line after the tag. */
interface M3uTagLine {
  /** Names in lower case; the first value of a repeated name is kept. */
  readonly attributes: Map<string, string>;
  /** Offset of the title in the line's bytes; the end of the line if there is no title. */
  readonly titleAt: number;
}

/**
 * Reads `name="value"` pairs from offset `at` to the comma before the title. Tolerates common errors of hand-written and generated
 * playlists: values in single quotes or without quotes, quotes within quotes, unclosed quotes, and a comma between the duration and the
 * attributes. Linear time, except for unclosed quotes, whose number is limited by the attribute limit.
 */
export function readM3uAttributes(line: M3uLine, at: number): M3uTagLine {
  const attributes = new Map<string, string>();
  let titleCandidateAt: number | undefined;
  let isInLooseText = false;
  let cursor = at;
  for (let count = 0; ; ) {
    const isBelowLimit = count < MAX_M3U_ATTRIBUTES;
    cursor = skipSpaces(line, cursor);
    if (cursor >= line.end) return { attributes, titleAt: titleCandidateAt ?? line.end };
    if (line.bytes[cursor] === COMMA) {
      if (isBelowLimit && startsQuoted(line, skipSpaces(line, cursor + 1))) {
        cursor++;
        continue;
      }
      return { attributes, titleAt: cursor + 1 };
    }
    const equals = isBelowLimit ? equalsAfterName(line, cursor) : undefined;
    if (equals === undefined) {
      // If no comma follows, the title begins here.
      if (!isInLooseText) titleCandidateAt = cursor;
      isInLooseText = true;
      cursor = endOfWord(line, cursor);
      continue;
    }
    isInLooseText = false;
    titleCandidateAt = undefined;
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
  /** Offset after the value. */
  readonly next: number;
}

function readValue(line: M3uLine, at: number): Value {
  const quoteAt = skipSpaces(line, at);
  const opening = quoteAt < line.end ? line.bytes[quoteAt] : undefined;
  if (opening === QUOTE || opening === APOSTROPHE) return readQuoted(line, quoteAt + 1, opening);
  // Without quotes, the value ends at a comma or at the next name.
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
  // The end if no quote closes the value properly: the first comma, or a quote followed by a space.
  let fallback: Value | undefined;
  for (let at = from; at < end; at++) {
    if (bytes[at] === COMMA) fallback ??= { from, to: at, next: at };
    if (bytes[at] !== quote) continue;
    // This quote opens the next value, so the current one was never closed.
    const nextName = nameBefore(line, at, from);
    if (nextName !== undefined) return { from, to: nextName, next: nextName };
    if (closes(line, at + 1)) return { from, to: at, next: at + 1 };
    if (bytes[at + 1]! <= 0x20) fallback ??= { from, to: at, next: at + 1 };
  }
  return fallback ?? { from, to: end, next: end };
}

/** Returns true if the text after a quote shows that the quote ends a value. */
function closes(line: M3uLine, at: number): boolean {
  const next = skipSpaces(line, at);
  return next >= line.end || line.bytes[next] === COMMA || equalsAfterName(line, next) !== undefined;
}

/** Offset of the attribute name before `="` if the quote at `at` opens a value after a space; undefined if it does not. */
function nameBefore({ bytes }: M3uLine, at: number, from: number): number | undefined {
  if (bytes[at - 1] !== EQUALS) return undefined;
  let start = at - 1;
  while (start > from && at - start <= MAX_NAME_BYTES && IS_NAME[bytes[start - 1]!]) start--;
  return start < at - 1 && start > from && bytes[start - 1]! <= 0x20 ? start : undefined;
}

/** Offset of the `=` after the attribute name at `at`; undefined if no name begins there. */
function equalsAfterName(line: M3uLine, at: number): number | undefined {
  const { bytes, end } = line;
  const limit = Math.min(end, at + MAX_NAME_BYTES);
  let cursor = at;
  while (cursor < limit && IS_NAME[bytes[cursor]!]) cursor++;
  return cursor > at && cursor < end && bytes[cursor] === EQUALS ? cursor : undefined;
}

/** Returns true if `name="` begins at `at`. */
function startsQuoted(line: M3uLine, at: number): boolean {
  const equals = equalsAfterName(line, at);
  return equals !== undefined && line.bytes[equals + 1] === QUOTE;
}

function skipSpaces({ bytes, end }: M3uLine, at: number): number {
  let cursor = at;
  while (cursor < end && bytes[cursor]! <= 0x20) cursor++;
  return cursor;
}

/** Offset of the next space or comma. */
function endOfWord({ bytes, end }: M3uLine, at: number): number {
  let cursor = at;
  while (cursor < end && bytes[cursor]! > 0x20 && bytes[cursor] !== COMMA) cursor++;
  return cursor;
}
