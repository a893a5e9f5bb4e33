import { placeFor } from "./fingerprint-table.ts";

const FIRST_PLACES = 1024;

/** A set of fingerprints (`fingerprintOf`) in a typed array, a sixth of the size of a `Set`. 0 marks a free place. */
export class FingerprintSet {
  #places = new Float64Array(FIRST_PLACES);
  #count = 0;
  readonly #seed = Math.floor(Math.random() * 2 ** 32);

  /** Adds a fingerprint; returns false if the set has it already. */
  add(fingerprint: number): boolean {
    if (!put(this.#places, fingerprint, this.#seed)) return false;
    if (++this.#count > this.#places.length / 2) this.#grow();
    return true;
  }

  #grow(): void {
    const larger = new Float64Array(this.#places.length * 2);
    for (const fingerprint of this.#places) if (fingerprint !== 0) put(larger, fingerprint, this.#seed);
    this.#places = larger;
  }
}

function put(places: Float64Array, fingerprint: number, seed: number): boolean {
  let place = placeFor(fingerprint, seed) & (places.length - 1);
  while (places[place] !== 0) {
    if (places[place] === fingerprint) return false;
    place = (place + 1) & (places.length - 1);
  }
  places[place] = fingerprint;
  return true;
}
