import { decodeUtf8 } from "../../base/utf8.ts";

/** Longer path elements are cut; file systems do not accept longer names. */
const MAX_ELEMENT_LENGTH = 240;

/** Converts untrusted bytes to one element of a display path: no separators, no control or bidirectional characters, no leading
 * or trailing spaces. Returns an empty string if nothing remains, and for `.` and `..`. */
export function safeElement(bytes: Uint8Array): string {
  const text = decodeUtf8(bytes)
    .replace(/[/\\:*?"<>|]/g, "_")
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]/gu, "")
    .trim();
  return /^\.{1,2}$/.test(text) ? "" : cut(text);
}

/** Converts untrusted elements to a display path without empty elements, `.` and `..`; returns `[fallback]` if none remains. */
export function safePath(elements: readonly Uint8Array[], fallback: string): string[] {
  const path = elements.map(safeElement).filter((element) => element !== "");
  return path.length > 0 ? path : [fallback];
}

/** Makes paths unique: the second `a.mp4` becomes `a (2).mp4`. */
export class UniquePaths {
  readonly #taken = new Set<string>();
  /** Last number used for each path, so that many equal names need no search. */
  readonly #numbers = new Map<string, number>();

  /** Returns the path itself if it is new, otherwise with a number in its last element. */
  add(path: readonly string[]): readonly string[] {
    const text = path.join("/");
    if (!this.#taken.has(text)) {
      this.#taken.add(text);
      return path;
    }
    for (let number = (this.#numbers.get(text) ?? 1) + 1; ; number++) {
      const numbered = [...path.slice(0, -1), withNumber(path[path.length - 1]!, number)];
      const numberedText = numbered.join("/");
      if (this.#taken.has(numberedText)) continue;
      this.#taken.add(numberedText);
      this.#numbers.set(text, number);
      return numbered;
    }
  }
}

function withNumber(name: string, number: number): string {
  const dot = name.lastIndexOf(".");
  return dot > 0 ? `${name.slice(0, dot)} (${number})${name.slice(dot)}` : `${name} (${number})`;
}

/** Cuts a long name, but keeps its extension and splits no surrogate pair. */
function cut(text: string): string {
  if (text.length <= MAX_ELEMENT_LENGTH) return text;
  const extension = /\.[A-Za-z0-9]{1,8}$/.exec(text)?.[0] ?? "";
  const stem = text.slice(0, MAX_ELEMENT_LENGTH - extension.length).replace(/[\ud800-\udbff]$/, "");
  return stem + extension;
}
