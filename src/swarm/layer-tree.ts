import { concatBytes } from "../base/bytes.ts";
import { DIGEST_BYTES, levelsFor, type Merkle } from "../base/merkle.ts";
import { type HashRange, MAX_HASHES, proofHashes } from "../wire/hash-message.ts";

/** The part of one file's tree that is above its pieces, for answering others (BEP 52). It is kept whole, as large again as
 * the hashes of the pieces: out of less, the proof of a single hash would cost us far more than it costs to ask for it. */
export class LayerTree {
  readonly #level: number;
  readonly #merkle: Merkle;
  readonly #count: number;
  /** Levels from the piece layer to the root. */
  readonly #height: number;
  /** The nodes of each level from the pieces up, those for zeros alone left out. Of the last one not all may be made. */
  readonly #rows: Uint8Array[];
  /** How many nodes of the last row are made. */
  #made: number;

  /** `hashes` are those of the pieces of the file, `level` is how many levels they are above the leaves. */
  constructor(hashes: Uint8Array, level: number, merkle: Merkle) {
    this.#level = level;
    this.#merkle = merkle;
    this.#count = hashes.length / DIGEST_BYTES;
    this.#height = levelsFor(this.#count);
    this.#rows = [hashes];
    this.#made = this.#count;
  }

  /** Whether a range is one of this layer, and no longer than is answered. */
  has({ baseLayer, index, length, proofLayers }: HashRange): boolean {
    if (baseLayer !== this.#level || length === 0 || length > MAX_HASHES || index >= this.#count)
      return false;
    const isWhole = length === 2 ** levelsFor(length);
    // What is no power of two has been cut by the end of the layer.
    const isInside = isWhole ? index + length <= 2 ** this.#height : index + length === this.#count;
    return isInside && index % 2 ** levelsFor(length) === 0 && proofLayers < this.#height;
  }

  /** Whether all nodes are made but the root, which nobody is told. */
  get isMade(): boolean {
    return this.#rows.length >= this.#height && this.#made === this.#widthOf(this.#rows.length - 1);
  }

  /** Goes on with the nodes above the pieces, `limit` of them at most; gives how many that were. */
  make(limit: number): number {
    let made = 0;
    for (; made < limit && !this.isMade; made++) this.#makeNext();
    return made;
  }

  /** The hashes of a range and of its proof; undefined where it has none such. What is not made yet is made now. */
  answer(range: HashRange): Uint8Array<ArrayBuffer> | undefined {
    if (!this.has(range)) return undefined;
    this.make(Number.POSITIVE_INFINITY);
    const { index, length } = range;
    const parts = Array.from({ length }, (_, i) => this.#node(0, index + i));
    const first = levelsFor(length);
    for (let above = first; above < first + proofHashes(range); above++)
      parts.push(this.#node(above, (index >> above) ^ 1));
    return concatBytes(parts);
  }

  /** A node so many levels above the piece layer. */
  #node(above: number, index: number): Uint8Array {
    const row = this.#rows[above]!;
    const at = index * DIGEST_BYTES;
    return at < row.length ? row.subarray(at, at + DIGEST_BYTES) : this.#merkle.zeros(this.#level + above);
  }

  #makeNext(): void {
    if (this.#made === this.#widthOf(this.#rows.length - 1)) {
      this.#rows.push(new Uint8Array(DIGEST_BYTES * Math.ceil(this.#made / 2)));
      this.#made = 0;
    }
    const below = this.#rows.length - 2;
    const pair = [this.#node(below, 2 * this.#made), this.#node(below, 2 * this.#made + 1)];
    const node = this.#merkle.rootOf(pair, this.#level + below);
    this.#rows[below + 1]!.set(node, this.#made++ * DIGEST_BYTES);
  }

  #widthOf(above: number): number {
    return this.#rows[above]!.length / DIGEST_BYTES;
  }
}
