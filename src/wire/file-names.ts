import { decodeUtf8 } from "../base/utf8.ts";

/** A path element longer than this is cut: no file system takes more, and nobody reads more. */
const MAX_ELEMENT_LENGTH = 240;

/** One element of a display path, made from bytes of a stranger: no separators, no control or direction-changing
 * characters, no leading or trailing spaces. Empty where nothing is left, and for `.` and `..`. */
export function safeElement(bytes: Uint8Array): string {
  const text = decodeUtf8(bytes)
    .replace(/[/\\:*?"<>|]/g, "_")
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]/gu, "")
    .trim();
  return /^\.{1,2}$/.test(text) ? "" : cut(text);
}

/** A display path of the elements that say something (empty ones and `..` are left out); `fallback` where none does. */
export function safePath(elements: readonly Uint8Array[], fallback: string): string[] {
  const path = elements.map(safeElement).filter((element) => element !== "");
  return path.length > 0 ? path : [fallback];
}

/** Gives every path a text of its own: the second `a.mp4` becomes `a (2).mp4`. */
export class UniquePaths {
  readonly #taken = new Set<string>();
  /** The last number given for a path, so that many equal names cost no search each. */
  readonly #numbers = new Map<string, number>();

  /** The path itself where it is new, or with a number in its last element. */
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

/** Keeps the extension, which says what kind of file it is, and never half a surrogate pair. */
function cut(text: string): string {
  if (text.length <= MAX_ELEMENT_LENGTH) return text;
  const extension = /\.[A-Za-z0-9]{1,8}$/.exec(text)?.[0] ?? "";
  const stem = text.slice(0, MAX_ELEMENT_LENGTH - extension.length).replace(/[\ud800-\udbff]$/, "");
  return stem + extension;
}
