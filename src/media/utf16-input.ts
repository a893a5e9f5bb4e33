import { concatBytes } from "../base/bytes.ts";
import { encodeUtf8 } from "../base/utf8.ts";

const BOM = 0xfeff;

/** Converts UTF-16 text to UTF-8, and passes all other text through. UTF-16 is recognized by its byte order mark, or by an ASCII
 * character at the start. */
export class Utf16Input {
  /** The first byte, until the encoding is known, or half a unit. */
  #rest: Uint8Array = new Uint8Array(0);
  #kind: "unknown" | "other" | "little" | "big" = "unknown";
  /** A high surrogate at the end of the previous bytes. */
  #high = "";

  /** Returns the text of these bytes as UTF-8. */
  push(bytes: Uint8Array, isEnd = false): Uint8Array {
    if (this.#kind === "other") return bytes;
    const all = this.#rest.length === 0 ? bytes : concatBytes([this.#rest, bytes]);
    if (this.#kind === "unknown") {
      if (all.length < 2 && !isEnd) {
        this.#rest = all;
        return new Uint8Array(0);
      }
      this.#kind = kindOf(all[0], all[1]);
      this.#rest = new Uint8Array(0);
      if (this.#kind === "other") return all;
    }
    const even = all.length - (all.length % 2);
    this.#rest = all.slice(even);
    return encodeUtf8(this.#text(all, even));
  }

  #text(bytes: Uint8Array, end: number): string {
    const [high, low] = this.#kind === "big" ? [0, 1] : [1, 0];
    let text = this.#high;
    for (let at = 0; at < end; at += 2) {
      const unit = bytes[at + high]! * 256 + bytes[at + low]!;
      if (unit !== BOM) text += String.fromCharCode(unit);
    }
    const isSplit = /[\ud800-\udbff]$/.test(text);
    this.#high = isSplit ? text.slice(-1) : "";
    return isSplit ? text.slice(0, -1) : text;
  }
}

function kindOf(first: number | undefined, second: number | undefined): "other" | "little" | "big" {
  if (first === 0xff && second === 0xfe) return "little";
  if (first === 0xfe && second === 0xff) return "big";
  if (first === 0 && isText(second)) return "big";
  return isText(first) && second === 0 ? "little" : "other";
}

function isText(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x20 && byte < 0x7f;
}
