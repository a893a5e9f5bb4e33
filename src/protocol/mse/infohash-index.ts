import { toHex } from "../../base/bytes.ts";
import { type Infohash, infohashBytes, type Sha1 } from "../../base/ids.ts";
import { req2Hash } from "../../wire/peer/mse.ts";

/**
 * Finds the infohash that an encrypted handshake names by its hash. Each infohash is hashed once while the engine has it.
 */
export class InfohashIndex {
  readonly #infohashes: () => Iterable<Infohash>;
  readonly #sha1: Sha1;
  #byHash = new Map<string, Infohash>();
  #hashes = new Map<Infohash, string>();

  constructor(infohashes: () => Iterable<Infohash>, sha1: Sha1) {
    this.#infohashes = infohashes;
    this.#sha1 = sha1;
  }

  /** Returns the 20 bytes of the infohash with this `req2Hash`; undefined if the engine has no such content. */
  find(hash: Uint8Array): Uint8Array | undefined {
    this.#refresh();
    const infohash = this.#byHash.get(toHex(hash));
    return infohash && infohashBytes(infohash);
  }

  #refresh(): void {
    const hashes = new Map<Infohash, string>();
    for (const infohash of this.#infohashes()) {
      const known = this.#hashes.get(infohash);
      hashes.set(infohash, known ?? toHex(req2Hash(infohashBytes(infohash), this.#sha1)));
    }
    this.#hashes = hashes;
    this.#byHash = new Map([...hashes].map(([infohash, hash]) => [hash, infohash]));
  }
}
