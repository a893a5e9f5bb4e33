/**
 * A multimap from fingerprints (`fingerprintOf`) to entry indexes in typed arrays; a `Map` of arrays would take ten times
 * the memory. Hashes with a random seed, so that no list can be crafted to make it slow.
 */
export class FingerprintTable {
  readonly #mask: number;
  readonly #seed = Math.floor(Math.random() * 2 ** 32);
  readonly #fingerprints: Float64Array;
  /** By place: the first and last entry of its fingerprint; -1 if none is left. */
  readonly #first: Int32Array;
  readonly #last: Int32Array;
  readonly #isUsed: Uint8Array;
  /** By entry: the next one with the same fingerprint, or -1. */
  readonly #next: Int32Array;

  /** Creates a table for at most `capacity` fingerprints of entries with indexes in `[0, entries)`. */
  constructor(capacity: number, entries: number) {
    // At least half of the places stay free, so that most lookups need one probe.
    const places = 2 ** Math.ceil(Math.log2(2 * capacity + 2));
    this.#mask = places - 1;
    this.#fingerprints = new Float64Array(places);
    this.#first = new Int32Array(places);
    this.#last = new Int32Array(places);
    this.#isUsed = new Uint8Array(places);
    this.#next = new Int32Array(entries);
  }

  /** Adds an entry after those with the same fingerprint. Each entry may be added once. */
  add(fingerprint: number, entry: number): void {
    const place = this.#placeOf(fingerprint);
    this.#next[entry] = -1;
    if (this.#isUsed[place] === 0) {
      this.#isUsed[place] = 1;
      this.#fingerprints[place] = fingerprint;
      this.#first[place] = entry;
    } else this.#next[this.#last[place]!] = entry;
    this.#last[place] = entry;
  }

  /** Returns the only entry with this fingerprint; -1 if none or several have it. */
  only(fingerprint: number): number {
    const place = this.#placeOf(fingerprint);
    if (this.#isUsed[place] === 0) return -1;
    const first = this.#first[place]!;
    return first === this.#last[place] ? first : -1;
  }

  /** Removes and returns the first entry with this fingerprint; -1 if none is left. Do not call `add` afterwards. */
  takeFirst(fingerprint: number): number {
    const place = this.#placeOf(fingerprint);
    if (this.#isUsed[place] === 0) return -1;
    const first = this.#first[place]!;
    if (first !== -1) this.#first[place] = this.#next[first]!;
    return first;
  }

  #placeOf(fingerprint: number): number {
    let place = placeFor(fingerprint, this.#seed) & this.#mask;
    while (this.#isUsed[place] === 1 && this.#fingerprints[place] !== fingerprint)
      place = (place + 1) & this.#mask;
    return place;
  }
}

/** Returns 32 bits that determine where the lookup of a fingerprint starts; unpredictable without the seed. */
export function placeFor(fingerprint: number, seed: number): number {
  let bits = Math.imul((fingerprint >>> 0) ^ seed, 0x9e3779b1);
  bits = Math.imul(bits ^ (bits >>> 15) ^ ((fingerprint / 2 ** 32) >>> 0), 0x85ebca77);
  bits = Math.imul(bits ^ (bits >>> 13) ^ seed, 0xc2b2ae3d);
  return (bits ^ (bits >>> 16)) >>> 0;
}
