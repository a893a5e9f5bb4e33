/** Titles are searched so many at a time, as one text: a thousandth of the calls, and no leaping about in memory. */
const CHUNK_SLOTS = 512;

/** Finds parts of titles. */
export class TitleSearch {
  readonly #titles: () => readonly string[];
  /** The titles of each run of slots, a line each; undefined where they have changed since. */
  #chunks: (string | undefined)[] = [];

  constructor(titles: () => readonly string[]) {
    this.#titles = titles;
  }

  /** The title of a slot is another now. */
  changed(slot: number): void {
    this.#chunks[Math.floor(slot / CHUNK_SLOTS)] = undefined;
  }

  /** All titles are others now. */
  allChanged(): void {
    this.#chunks = [];
  }

  /** 1 for each slot whose title has `part` in it; `part` is folded as titles are. */
  find(part: string): Uint8Array {
    const titles = this.#titles();
    const line = part.replaceAll("\n", " ");
    const found = new Uint8Array(titles.length);
    for (let chunk = 0; chunk * CHUNK_SLOTS < titles.length; chunk++) {
      const first = chunk * CHUNK_SLOTS;
      this.#chunks[chunk] ??= titles.slice(first, first + CHUNK_SLOTS).join("\n");
      markLines(this.#chunks[chunk]!, line, first, titles, found);
    }
    return found;
  }
}

function markLines(
  text: string,
  part: string,
  first: number,
  titles: readonly string[],
  found: Uint8Array,
): void {
  let slot = first;
  let end = titles[slot]!.length;
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, end + 1)) {
    while (at > end) end += titles[++slot]!.length + 1;
    found[slot] = 1;
  }
}
