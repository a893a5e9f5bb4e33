import { DecodeError } from "../base/errors.ts";
import { decodeUtf8, isUtf8 } from "../base/utf8.ts";

/** One line of a playlist, as bytes: good only until the call that brought it returns. */
export interface M3uLine {
  readonly bytes: Uint8Array;
  /** Where it begins and ends in `bytes`, spaces around it left out. */
  readonly start: number;
  readonly end: number;
  /** From 1 on. */
  readonly number: number;
  /** Where it begins in the whole list, in bytes. */
  readonly offset: number;
  readonly encoding: "ascii" | "utf-8" | "windows-1252";
  /** Whether control characters are in it, which no text keeps. */
  readonly hasControls: boolean;
}

/** Longer lines are passed over; what is that long is a picture within an attribute, not a link. */
export const MAX_M3U_LINE_BYTES = 64 * 1024;

/** A line that is not whole yet is kept in as much memory at first. */
const FIRST_CARRY_BYTES = 1024;
const LF = 0x0a;
const CR = 0x0d;

/** Parts bytes into lines, ended by LF, CR LF or CR. Holds nothing but the line that is not whole yet. */
export class M3uLines {
  /** Lines longer than {@link MAX_M3U_LINE_BYTES} so far. */
  tooLong = 0;
  #carry = new Uint8Array(FIRST_CARRY_BYTES);
  #carried = 0;
  #isTooLong = false;
  #endedByCr = false;
  #number = 0;
  #offset = 0;

  /** Takes the next bytes and hands out each line that is whole now, blank ones left out. */
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
    this.#keep(bytes, start);
    this.#offset += bytes.length;
  }

  /** Hands out the last line, where no line end closed it. */
  end(each: (line: M3uLine) => void): void {
    this.#line(new Uint8Array(0), 0, 0, each);
  }

  #line(bytes: Uint8Array, start: number, end: number, each: (line: M3uLine) => void): void {
    this.#number++;
    const length = this.#carried + end - start;
    if (this.#isTooLong || length > MAX_M3U_LINE_BYTES) this.tooLong++;
    else if (this.#carried === 0) this.#emit(bytes, start, end, this.#offset + start, each);
    else {
      const offset = this.#offset - this.#carried;
      this.#keep(bytes.subarray(0, end), start);
      this.#emit(this.#carry, 0, this.#carried, offset, each);
    }
    this.#carried = 0;
    this.#isTooLong = false;
  }

  #keep(bytes: Uint8Array, start: number): void {
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
    // Lists that were joined from several files have byte order marks in their middle, too.
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
    const encoding = isAscii ? "ascii" : isUtf8(bytes.subarray(from, to)) ? "utf-8" : "windows-1252";
    each({
      bytes,
      start: from,
      end: to,
      number: this.#number,
      offset,
      encoding,
      hasControls: hasControls || !isAscii,
    });
  }
}

/** What differs from Latin-1 in Windows-1252, from 0x80 on; browsers read "Latin-1" so, too. */
const WINDOWS_1252 = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ";
/** How many characters are made at once: well below every engine's argument limit. */
const CHUNK = 4096;

/** The text of a part of a line, by itself: it keeps nothing of the bytes around it alive. */
export function lineText(line: M3uLine, from: number, to: number): string {
  let text = "";
  if (line.encoding === "utf-8") text = decodeUtf8(line.bytes.subarray(from, to));
  else {
    for (let at = from; at < to; at += CHUNK) {
      const part: unknown = line.bytes.subarray(at, Math.min(to, at + CHUNK));
      // A spread would go through an iterator, which takes five times as long.
      text += String.fromCharCode.apply(undefined, part as number[]);
    }
    if (line.encoding === "windows-1252")
      text = text.replace(/[\x80-\x9f]/g, (character) => WINDOWS_1252[character.charCodeAt(0) - 0x80]!);
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return line.hasControls ? text.replace(/[\0-\x1f\x7f-\x9f\u2028\u2029]+/g, " ") : text;
}

/** The refusal of bytes that are no text. */
function binaryAt(offset: number): DecodeError {
  return new DecodeError("playlist", offset, "expected text, binary data came");
}
