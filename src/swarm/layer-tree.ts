import { concatBytes } from "../base/bytes.ts";
import { DIGEST_BYTES, levelsFor, type Merkle } from "../base/merkle.ts";
import { type HashRange, MAX_HASHES, proofHashes } from "../wire/hash-message.ts";

/** Nodes so many levels above the piece layer are kept, those below are made of the hashes each time: at most 512 of them. */
const KEPT_ABOVE = levelsFor(MAX_HASHES);

/** The part of one file's tree that is above its pieces, for answering others (BEP 52). */
export class LayerTree {
  readonly #hashes: Uint8Array;
  readonly #level: number;
  readonly #merkle: Merkle;
  readonly #count: number;
  /** Levels from the piece layer to the root. */
  readonly #height: number;
  /** Nodes from `KEPT_ABOVE` on, by level; made when they are first needed. */
  #rows: readonly (readonly Uint8Array[])[] | undefined;

  /** `hashes` are those of the pieces of the file, `level` is how many levels they are above the leaves. */
  constructor(hashes: Uint8Array, level: number, merkle: Merkle) {
    this.#hashes = hashes;
    this.#level = level;
    this.#merkle = merkle;
    this.#count = hashes.length / DIGEST_BYTES;
    this.#height = levelsFor(this.#count);
  }

  /** The hashes of a range and of its proof; undefined where it is not one of this layer, or longer than is answered. */
  answer(range: HashRange): Uint8Array<ArrayBuffer> | undefined {
    if (!this.#has(range)) return undefined;
    const { index, length } = range;
    const parts: Uint8Array[] = [];
    for (let i = 0; i < length; i++) parts.push(this.#node(0, index + i));
    const first = levelsFor(length);
    for (let above = first; above < first + proofHashes(range); above++)
      parts.push(this.#node(above, (index >> above) ^ 1));
    return concatBytes(parts);
  }

  #has({ baseLayer, index, length, proofLayers }: HashRange): boolean {
    if (baseLayer !== this.#level || length === 0 || length > MAX_HASHES || index >= this.#count)
      return false;
    const isWhole = length === 2 ** levelsFor(length);
    // What is no power of two has been cut by the end of the layer.
    const isInside = isWhole ? index + length <= 2 ** this.#height : index + length === this.#count;
    return isInside && index % 2 ** levelsFor(length) === 0 && proofLayers < this.#height;
  }

  /** A node so many levels above the piece layer. */
  #node(above: number, index: number): Uint8Array {
    if (above >= KEPT_ABOVE) return this.#kept()[above - KEPT_ABOVE]![index] ?? this.#zeros(above);
    const start = index * 2 ** above;
    const end = Math.min(this.#count, start + 2 ** above);
    if (start >= end) return this.#zeros(above);
    return above === 0 ? this.#hash(start) : this.#rootOf(start, end, above);
  }

  /** The root of a tree of so many levels over the pieces from `start` up to `end`. */
  #rootOf(start: number, end: number, above: number): Uint8Array {
    const row = Array.from({ length: end - start }, (_, i) => this.#hash(start + i));
    const root = this.#merkle.rootOf(row, this.#level);
    return this.#merkle.grow(root, this.#level + levelsFor(row.length), this.#level + above);
  }

  #kept(): readonly (readonly Uint8Array[])[] {
    if (this.#rows) return this.#rows;
    const rows: Uint8Array[][] = [[]];
    for (let at = 0; at < this.#count; at += MAX_HASHES) {
      rows[0]!.push(this.#rootOf(at, Math.min(at + MAX_HASHES, this.#count), KEPT_ABOVE));
    }
    for (let above = KEPT_ABOVE; above + 1 < this.#height; above++) {
      const below = rows[above - KEPT_ABOVE]!;
      const row: Uint8Array[] = [];
      for (let i = 0; i < below.length; i += 2)
        row.push(this.#merkle.rootOf([below[i]!, below[i + 1] ?? this.#zeros(above)], this.#level + above));
      rows.push(row);
    }
    this.#rows = rows;
    return rows;
  }

  #hash(piece: number): Uint8Array {
    return this.#hashes.subarray(piece * DIGEST_BYTES, (piece + 1) * DIGEST_BYTES);
  }

  #zeros(above: number): Uint8Array {
    return this.#merkle.zeros(this.#level + above);
  }
}
