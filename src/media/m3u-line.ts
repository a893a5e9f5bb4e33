import { DecodeError } from "../base/errors.ts";
import { decodeUtf8, isUtf8 } from "../base/utf8.ts";
import { charsetDecoder, charsetSample, detectCharset, SAMPLE_BYTES } from "./charset.ts";

/** A line of a playlist, as bytes that are valid only during the callback. */
export interface M3uLine {
  readonly bytes: Uint8Array;
  /** Start and end in `bytes`, without surrounding spaces. */
  readonly start: number;
  readonly end: number;
  /** Line number, from 1. */
  readonly number: number;
  /** Byte offset in the whole playlist. */
  readonly offset: number;
  readonly encoding: LineEncoding;
  /** True if it can contain control characters, which {@link lineText} removes. */
  readonly hasControls: boolean;
}

/** `latin-1` includes the characters of Windows-1252; a function decodes another character set. */
type LineEncoding = "ascii" | "utf-8" | "latin-1" | ((bytes: Uint8Array) => string);

/** Longer lines are skipped; they contain embedded pictures, not links. */
const MAX_M3U_LINE_BYTES = 64 * 1024;

/** Initial buffer size for an incomplete line. */
const FIRST_CARRY_BYTES = 1024;
/** Lines are held back until the character set can be detected, but not more bytes than this. */
const MAX_HELD_BYTES = 256 * 1024;
/** With so many more lines of another character set, lines that are also valid UTF-8 are so by chance. */
const UTF8_BY_CHANCE = 10;
const LF = 0x0a;
const CR = 0x0d;

/**
 * Splits bytes into lines that end with LF, CR LF or CR, and detects their encoding: UTF-8, or one other character set for all other
 * lines. Buffers the incomplete last line, and lines whose character set is still unknown.
 */
export class M3uLines {
  /** Number of skipped lines, longer than {@link MAX_M3U_LINE_BYTES}. */
  tooLong = 0;
  #carry = new Uint8Array(FIRST_CARRY_BYTES);
  #carried = 0;
  #isTooLong = false;
  #endedByCr = false;
  #number = 0;
  #offset = 0;
  /** The encoding of lines that are not UTF-8, once detected. */
  #encoding: LineEncoding | undefined;
  /** Lines from the first one of unknown encoding, with their own copy of the bytes. */
  readonly #held: M3uLine[] = [];
  #heldBytes = 0;
  /** Words with non-ASCII bytes of these lines. */
  readonly #sample: number[] = [];
  #utf8Lines = 0;
  #otherLines = 0;

  /** Adds bytes and calls `each` for every completed line that is not blank. Throws `DecodeError` on binary data. */
  push(bytes: Uint8Array, each: (line: M3uLine) => void): void {
    let start = 0;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (byte > CR) continue;
      if (byte === LF && at === 0 && this.#endedByCr) start = 1;
      else if (byte === LF || byte === CR) {
        this.#line(bytes, start, at, each);
        if (byte === CR && bytes[at + 1] === LF) at++;
        start = at + 1;
      } else if (byte === 0) throw binaryAt(this.#offset + at);
    }
    if (bytes.length > 0) this.#endedByCr = bytes[bytes.length - 1] === CR;
    this.#carryOver(bytes, start);
    this.#offset += bytes.length;
  }

  /** Calls `each` for the last line if it has no line end. */
  end(each: (line: M3uLine) => void): void {
    this.#line(new Uint8Array(0), 0, 0, each);
    if (this.#encoding === undefined) this.#detect(each);
  }

  #line(bytes: Uint8Array, start: number, end: number, each: (line: M3uLine) => void): void {
    this.#number++;
    const length = this.#carried + end - start;
    if (this.#isTooLong || length > MAX_M3U_LINE_BYTES) this.tooLong++;
    else if (this.#carried === 0) this.#emit(bytes, start, end, this.#offset + start, each);
    else {
      const offset = this.#offset - this.#carried;
      this.#carryOver(bytes.subarray(0, end), start);
      this.#emit(this.#carry, 0, this.#carried, offset, each);
    }
    this.#carried = 0;
    this.#isTooLong = false;
  }

  #carryOver(bytes: Uint8Array, start: number): void {
    if (start >= bytes.length || this.#isTooLong) return;
    const length = this.#carried + bytes.length - start;
    if (length > MAX_M3U_LINE_BYTES) {
      this.#isTooLong = true;
      return;
    }
    if (length > this.#carry.length) {
      const larger = new Uint8Array(Math.min(MAX_M3U_LINE_BYTES, Math.max(length, 2 * this.#carry.length)));
      larger.set(this.#carry.subarray(0, this.#carried));
      this.#carry = larger;
    }
    this.#carry.set(bytes.subarray(start), this.#carried);
    this.#carried = length;
  }

  #emit(bytes: Uint8Array, start: number, end: number, offset: number, each: (line: M3uLine) => void): void {
    let [from, to] = [start, end];
    // Playlists joined from several files can have byte order marks anywhere.
    if (bytes[from] === 0xef && bytes[from + 1] === 0xbb && bytes[from + 2] === 0xbf && from + 3 <= to)
      from += 3;
    while (from < to && bytes[from]! <= 0x20) from++;
    while (to > from && bytes[to - 1]! <= 0x20) to--;
    if (from === to) return;
    let isAscii = true;
    let hasControls = false;
    for (let at = from; at < to; at++) {
      const byte = bytes[at]!;
      if (byte > 0x7e) isAscii = false;
      else if (byte < 0x20) hasControls = true;
    }
    const encoding = isAscii ? "ascii" : this.#encodingOf(bytes.subarray(from, to));
    const line = {
      bytes,
      start: from,
      end: to,
      number: this.#number,
      offset,
      hasControls: hasControls || !isAscii,
    };
    if (encoding !== undefined && this.#held.length === 0) each({ ...line, encoding });
    else this.#hold({ ...line, encoding: encoding ?? "latin-1" }, encoding === undefined, each);
  }

  /** The encoding of a line that is not ASCII; undefined if it is not known yet. */
  #encodingOf(bytes: Uint8Array): LineEncoding | undefined {
    if (this.#isUtf8ByChance() || !isUtf8(bytes)) {
      this.#otherLines++;
      return this.#encoding;
    }
    this.#utf8Lines++;
    return "utf-8";
  }

  #isUtf8ByChance(): boolean {
    return this.#encoding !== undefined && this.#otherLines > UTF8_BY_CHANCE * this.#utf8Lines;
  }

  #hold(line: M3uLine, isUnknown: boolean, each: (line: M3uLine) => void): void {
    const bytes = line.bytes.slice(line.start, line.end);
    this.#held.push({ ...line, bytes, start: 0, end: bytes.length });
    this.#heldBytes += bytes.length;
    if (isUnknown) this.#sample.push(...charsetSample(bytes));
    if (this.#sample.length >= SAMPLE_BYTES || this.#heldBytes >= MAX_HELD_BYTES) this.#detect(each);
  }

  /** Detects the character set of the held lines, and emits them. */
  #detect(each: (line: M3uLine) => void): void {
    const charset = detectCharset(this.#sample);
    this.#encoding = charset === "windows-1252" ? "latin-1" : charsetDecoder(charset);
    const isUtf8ByChance = this.#isUtf8ByChance();
    for (const line of this.#held.splice(0)) {
      const isOther = line.encoding === "latin-1" || (isUtf8ByChance && line.encoding === "utf-8");
      each(isOther ? { ...line, encoding: this.#encoding } : line);
    }
  }
}

/** Windows-1252 from 0x80, where it differs from Latin-1; browsers decode "Latin-1" the same way. */
const WINDOWS_1252 = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ";
/** Characters per `fromCharCode` call, below the argument limit of all JavaScript engines. */
const CHUNK = 4096;

/** Decodes the bytes `[from, to)` of a line, with control characters replaced by a space. The result does not reference the bytes. */
export function lineText(line: M3uLine, from: number, to: number): string {
  let text = "";
  if (line.encoding === "utf-8") text = decodeUtf8(line.bytes.subarray(from, to));
  else if (typeof line.encoding === "function") text = line.encoding(line.bytes.subarray(from, to));
  else {
    for (let at = from; at < to; at += CHUNK) {
      const part: unknown = line.bytes.subarray(at, Math.min(to, at + CHUNK));
      // `apply` is five times as fast as a spread.
      text += String.fromCharCode.apply(undefined, part as number[]);
    }
    if (line.encoding === "latin-1")
      text = text.replace(/[\x80-\x9f]/g, (character) => WINDOWS_1252[character.charCodeAt(0) - 0x80]!);
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
  return line.hasControls ? text.replace(/[\0-\x1f\x7f-\x9f\u2028\u2029]+/g, " ") : text;
}

function binaryAt(offset: number): DecodeError {
  return new DecodeError("playlist", offset, "expected text, binary data came");
}
