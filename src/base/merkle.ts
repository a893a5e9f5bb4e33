import { assert } from "./assert.ts";
import { concatBytes } from "./bytes.ts";
import type { Sha256 } from "./signature.ts";

/** Bytes of a file that one leaf of its tree covers (BEP 52). */
export const LEAF_BYTES = 16 * 1024;
/** Length of each hash in a tree. */
export const DIGEST_BYTES = 32;
/** Limit that no tree of a possible file reaches. */
const MAX_LEVELS = 40;

/** SHA-256 Merkle trees (BEP 52): binary, with zero leaves added up to a power of two. */
export class Merkle {
  readonly #sha256: Sha256;
  /** The roots of trees of zero leaves, indexed by level; level 0 is one zero leaf. */
  readonly #zeros: Uint8Array[] = [new Uint8Array(DIGEST_BYTES)];

  constructor(sha256: Sha256) {
    this.#sha256 = sha256;
  }

  /** Returns the root of the smallest tree over `bytes`. The last leaf may cover fewer bytes. */
  rootOfBytes(bytes: Uint8Array): Uint8Array {
    return this.rootOf(this.leavesOf(bytes), 0);
  }

  /** Returns the leaf hashes of `bytes`. The last leaf may cover fewer bytes. */
  leavesOf(bytes: Uint8Array): Uint8Array[] {
    const leaves: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; at += LEAF_BYTES)
      leaves.push(this.#sha256(bytes.subarray(at, at + LEAF_BYTES)));
    return leaves;
  }

  /** Returns the root of the smallest tree over `hashes`: one or more hashes of the given `level` (0: leaves). */
  rootOf(hashes: readonly Uint8Array[], level: number): Uint8Array {
    assert(hashes.length > 0, "a tree has a leaf");
    let row = hashes;
    for (let height = level; row.length > 1; height++) {
      const above: Uint8Array[] = [];
      for (let i = 0; i < row.length; i += 2)
        above.push(this.#join(row[i]!, row[i + 1] ?? this.zeroRoot(height)));
      row = above;
    }
    return row[0]!;
  }

  /** Returns the root of a tree of `to` levels whose first subtree of `from` levels has `root`, and whose other leaves are zero. */
  padRoot(root: Uint8Array, from: number, to: number): Uint8Array {
    let grown = root;
    for (let level = from; level < to; level++) grown = this.#join(grown, this.zeroRoot(level));
    return grown;
  }

  /** Computes the root from a node, its index in its level, and its proof: the sibling hash at each level, lowest first. */
  rootFromProof(node: Uint8Array, index: number, proof: readonly Uint8Array[]): Uint8Array {
    let root = node;
    let at = index;
    for (const sibling of proof) {
      root = at % 2 === 0 ? this.#join(root, sibling) : this.#join(sibling, root);
      at = Math.floor(at / 2);
    }
    return root;
  }

  /** Returns the root of a tree of `level` levels whose leaves are all zero. */
  zeroRoot(level: number): Uint8Array {
    assert(level <= MAX_LEVELS, `a tree has at most ${MAX_LEVELS} levels`);
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

/** Returns the number of levels above `leaves` leaves. */
export function levelsFor(leaves: number): number {
  let levels = 0;
  while (2 ** levels < leaves) levels++;
  return levels;
}
