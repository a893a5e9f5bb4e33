import { assert } from "./assert.ts";
import { concatBytes } from "./bytes.ts";
import type { Sha256 } from "./signature.ts";

/** What one leaf of a file's tree stands for (BEP 52). */
export const LEAF_BYTES = 16 * 1024;
/** The length of every hash of a tree. */
export const DIGEST_BYTES = 32;
/** A tree of more levels than this has more leaves than any file can have. */
const MAX_LEVELS = 40;

/** Merkle trees of SHA-256 (BEP 52): binary, filled up with leaves of zeros to a power of two. */
export class Merkle {
  readonly #sha256: Sha256;
  /** By level, the root of a tree of zeros alone: level 0 is the leaf that stands for nothing. */
  readonly #zeros: Uint8Array[] = [new Uint8Array(DIGEST_BYTES)];

  constructor(sha256: Sha256) {
    this.#sha256 = sha256;
  }

  /** The root of the tree over `bytes`, whose last leaf may be shorter; with no more levels than that takes. */
  rootOfBytes(bytes: Uint8Array): Uint8Array {
    return this.rootOf(this.leavesOf(bytes), 0);
  }

  /** The leaves of `bytes`, the last of which may be of less than others. */
  leavesOf(bytes: Uint8Array): Uint8Array[] {
    const leaves: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; at += LEAF_BYTES)
      leaves.push(this.#sha256(bytes.subarray(at, at + LEAF_BYTES)));
    return leaves;
  }

  /** The root over hashes of one level (0: leaves), at least one; with no more levels than that takes. */
  rootOf(hashes: readonly Uint8Array[], level: number): Uint8Array {
    assert(hashes.length > 0, "a tree has a leaf");
    let row = hashes;
    for (let height = level; row.length > 1; height++) {
      const above: Uint8Array[] = [];
      for (let i = 0; i < row.length; i += 2)
        above.push(this.#join(row[i]!, row[i + 1] ?? this.zeros(height)));
      row = above;
    }
    return row[0]!;
  }

  /** The root of a taller tree whose first part has this root, and whose rest is zeros. */
  grow(root: Uint8Array, from: number, to: number): Uint8Array {
    let grown = root;
    for (let level = from; level < to; level++) grown = this.#join(grown, this.zeros(level));
    return grown;
  }

  /** The root above a node, the one at `index` of its level, by the other half of each level on the way, the lowest first. */
  climb(node: Uint8Array, index: number, others: readonly Uint8Array[]): Uint8Array {
    let root = node;
    let at = index;
    for (const other of others) {
      root = at % 2 === 0 ? this.#join(root, other) : this.#join(other, root);
      at = Math.floor(at / 2);
    }
    return root;
  }

  /** The root of a tree of zeros of so many levels. */
  zeros(level: number): Uint8Array {
    assert(level <= MAX_LEVELS, "no file has a tree of so many levels");
    for (let made = this.#zeros.length; made <= level; made++) {
      const below = this.#zeros[made - 1]!;
      this.#zeros.push(this.#join(below, below));
    }
    return this.#zeros[level]!;
  }

  #join(left: Uint8Array, right: Uint8Array): Uint8Array {
    return this.#sha256(concatBytes([left, right]));
  }
}

/** How many levels a tree of so many leaves has above them. */
export function levelsFor(leaves: number): number {
  let levels = 0;
  while (2 ** levels < leaves) levels++;
  return levels;
}
