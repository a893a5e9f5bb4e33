/** Titles are joined in chunks and searched as one text, which is faster than a search in each title. */
const CHUNK_SLOTS = 512;

/** Substring search in titles. */
export class TitleSearch {
  readonly #titles: () => readonly string[];
  /** The titles of each chunk of slots, one per line; undefined if they have changed. */
  #chunks: (string | undefined)[] = [];

  constructor(titles: () => readonly string[]) {
    this.#titles = titles;
  }

  /** Invalidates the title of a slot. */
  changed(slot: number): void {
    this.#chunks[Math.floor(slot / CHUNK_SLOTS)] = undefined;
  }

  /** Invalidates all titles. */
  allChanged(): void {
    this.#chunks = [];
  }

  /** Returns 1 for each slot whose title contains the folded text `part`, else 0. */
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
