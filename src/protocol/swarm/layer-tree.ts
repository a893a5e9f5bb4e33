import { concatBytes } from "../../base/bytes.ts";
import { DIGEST_BYTES, levelsFor, type Merkle } from "../../base/merkle.ts";
import { type HashRange, MAX_HASHES, proofHashCount } from "../../wire/peer/hash-message.ts";

/** The part of one file's Merkle tree from the piece layer up, for answering hash requests (BEP 52). It is kept whole, which
 * doubles the memory of the piece hashes: recomputing it would make one proof far more expensive than one request. */
export class LayerTree {
  readonly #level: number;
  readonly #merkle: Merkle;
  readonly #count: number;
  /** Levels from the piece layer to the root. */
  readonly #height: number;
  /** The nodes of each level from the piece layer up, without those of zeros. The last row may be incomplete. */
  readonly #rows: Uint8Array[];
  /** Number of computed nodes in the last row. */
  #computed: number;

  /** `hashes` are the piece hashes of the file; `level` is the level of the piece layer above the leaves. */
  constructor(hashes: Uint8Array, level: number, merkle: Merkle) {
    this.#level = level;
    this.#merkle = merkle;
    this.#count = hashes.length / DIGEST_BYTES;
    this.#height = levelsFor(this.#count);
    this.#rows = [hashes];
    this.#computed = this.#count;
  }

  /** Whether the range lies in this layer and is short enough to be answered. */
  has({ baseLayer, index, length, proofLayers }: HashRange): boolean {
    if (baseLayer !== this.#level || length === 0 || length > MAX_HASHES || index >= this.#count)
      return false;
    const isWhole = length === 2 ** levelsFor(length);
    // A length that is no power of two is cut off by the end of the layer.
    const isInside = isWhole ? index + length <= 2 ** this.#height : index + length === this.#count;
    return isInside && index % 2 ** levelsFor(length) === 0 && proofLayers < this.#height;
  }

  /** Whether all nodes except the root are computed; the root is never sent. */
  get isComputed(): boolean {
    return this.#rows.length >= this.#height && this.#computed === this.#widthOf(this.#rows.length - 1);
  }

  /** Computes at most `limit` further nodes; returns how many were computed. */
  compute(limit: number): number {
    let computed = 0;
    for (; computed < limit && !this.isComputed; computed++) this.#computeNext();
    return computed;
  }

  /** Returns the hashes of a range and its proof; undefined if the range is invalid. Computes missing nodes. */
  answer(range: HashRange): Uint8Array<ArrayBuffer> | undefined {
    if (!this.has(range)) return undefined;
    this.compute(Number.POSITIVE_INFINITY);
    const { index, length } = range;
    const parts = Array.from({ length }, (_, i) => this.#node(0, index + i));
    const first = levelsFor(length);
    for (let above = first; above < first + proofHashCount(range); above++)
      parts.push(this.#node(above, (index >> above) ^ 1));
    return concatBytes(parts);
  }

  /** Returns a node `above` levels above the piece layer. */
  #node(above: number, index: number): Uint8Array {
    const row = this.#rows[above]!;
    const at = index * DIGEST_BYTES;
    return at < row.length ? row.subarray(at, at + DIGEST_BYTES) : this.#merkle.zeroRoot(this.#level + above);
  }

  #computeNext(): void {
    if (this.#computed === this.#widthOf(this.#rows.length - 1)) {
      this.#rows.push(new Uint8Array(DIGEST_BYTES * Math.ceil(this.#computed / 2)));
      this.#computed = 0;
    }
    const below = this.#rows.length - 2;
    const pair = [this.#node(below, 2 * this.#computed), this.#node(below, 2 * this.#computed + 1)];
    const node = this.#merkle.rootOf(pair, this.#level + below);
    this.#rows[below + 1]!.set(node, this.#computed++ * DIGEST_BYTES);
  }

  #widthOf(above: number): number {
    return this.#rows[above]!.length / DIGEST_BYTES;
  }
}
