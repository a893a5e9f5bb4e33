import { placeFor } from "./mark-table.ts";

const FIRST_PLACES = 1024;

/** Marks (`textMark`) that have been seen: a set in one typed array, a sixth of what a `Set` takes. 0 is no mark. */
export class MarkSet {
  #places = new Float64Array(FIRST_PLACES);
  #count = 0;
  readonly #seed = Math.floor(Math.random() * 2 ** 32);

  /** Adds a mark; false where it is there already. */
  add(mark: number): boolean {
    if (!put(this.#places, mark, this.#seed)) return false;
    if (++this.#count > this.#places.length / 2) this.#grow();
    return true;
  }

  #grow(): void {
    const larger = new Float64Array(this.#places.length * 2);
    for (const mark of this.#places) if (mark !== 0) put(larger, mark, this.#seed);
    this.#places = larger;
  }
}

function put(places: Float64Array, mark: number, seed: number): boolean {
  let place = placeFor(mark, seed) & (places.length - 1);
  while (places[place] !== 0) {
    if (places[place] === mark) return false;
    place = (place + 1) & (places.length - 1);
  }
  places[place] = mark;
  return true;
}
