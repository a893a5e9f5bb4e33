import { ownCopy } from "./item-names.ts";

/** Texts that many items share, as numbers. A text that nobody uses any more gives its number back. */
export class Words {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [];
  readonly #uses: number[] = [];
  readonly #free: number[] = [];

  /** The number of a text; counts as one use of it. */
  take(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) {
      this.#uses[known]! += 1;
      return known;
    }
    const number = this.#free.pop() ?? this.#texts.length;
    const own = ownCopy(text);
    this.#numbers.set(own, number);
    this.#texts[number] = own;
    this.#uses[number] = 1;
    return number;
  }

  /** One use less. */
  give(number: number): void {
    this.#uses[number]! -= 1;
    if (this.#uses[number]! > 0) return;
    this.#numbers.delete(this.#texts[number]!);
    this.#texts[number] = "";
    this.#free.push(number);
  }

  /** The number of a text that is in use. */
  find(text: string): number | undefined {
    return this.#numbers.get(text);
  }

  /** The numbers of all texts that have `part` in them. */
  containing(part: string): ReadonlySet<number> {
    const found = new Set<number>();
    for (const [text, number] of this.#numbers) if (text.includes(part)) found.add(number);
    return found;
  }
}
