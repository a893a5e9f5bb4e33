/**
 * Which entries have which mark (`textMark`), in typed arrays: a map of a hundred thousand little arrays would take ten
 * times the memory, and keep the collector busy. Seeded by chance, so that no list can be written to make it slow.
 */
export class MarkTable {
  readonly #mask: number;
  readonly #seed = Math.floor(Math.random() * 2 ** 32);
  readonly #marks: Float64Array;
  /** Of each place: the first and the last entry of its mark; -1 where none is left. */
  readonly #first: Int32Array;
  readonly #last: Int32Array;
  readonly #isUsed: Uint8Array;
  /** Of each entry: the next with its mark, or -1. */
  readonly #next: Int32Array;

  /** An empty table for `most` marks of entries whose indexes are below `entries`. */
  constructor(most: number, entries: number) {
    // Half of the places stay free at least: most searches end where they begin.
    const places = 2 ** Math.ceil(Math.log2(2 * most + 2));
    this.#mask = places - 1;
    this.#marks = new Float64Array(places);
    this.#first = new Int32Array(places);
    this.#last = new Int32Array(places);
    this.#isUsed = new Uint8Array(places);
    this.#next = new Int32Array(entries);
  }

  /** Adds an entry behind those that have its mark already. Each entry once; no more than the table was made for. */
  add(mark: number, entry: number): void {
    const place = this.#placeOf(mark);
    this.#next[entry] = -1;
    if (this.#isUsed[place] === 0) {
      this.#isUsed[place] = 1;
      this.#marks[place] = mark;
      this.#first[place] = entry;
    } else this.#next[this.#last[place]!] = entry;
    this.#last[place] = entry;
  }

  /** The one entry that has this mark; -1 where none has it, or several. */
  only(mark: number): number {
    const place = this.#placeOf(mark);
    if (this.#isUsed[place] === 0) return -1;
    const first = this.#first[place]!;
    return first === this.#last[place] ? first : -1;
  }

  /** Takes the first entry with this mark out; -1 where there is none (any more). Nothing is added after that. */
  takeFirst(mark: number): number {
    const place = this.#placeOf(mark);
    if (this.#isUsed[place] === 0) return -1;
    const first = this.#first[place]!;
    if (first !== -1) this.#first[place] = this.#next[first]!;
    return first;
  }

  #placeOf(mark: number): number {
    let place = placeFor(mark, this.#seed) & this.#mask;
    while (this.#isUsed[place] === 1 && this.#marks[place] !== mark) place = (place + 1) & this.#mask;
    return place;
  }
}

/** Where the search for a mark begins: 32 bits that nobody can foretell without the seed. */
export function placeFor(mark: number, seed: number): number {
  let bits = Math.imul((mark >>> 0) ^ seed, 0x9e3779b1);
  bits = Math.imul(bits ^ (bits >>> 15) ^ ((mark / 2 ** 32) >>> 0), 0x85ebca77);
  bits = Math.imul(bits ^ (bits >>> 13) ^ seed, 0xc2b2ae3d);
  return (bits ^ (bits >>> 16)) >>> 0;
}
