import { equalBytes } from "../base/bytes.ts";
import { DIGEST_BYTES, LEAF_BYTES, levelsFor, type Merkle } from "../base/merkle.ts";
import { type HashRange, MAX_HASHES } from "../wire/hash-message.ts";
import type { PieceLayer } from "../wire/piece-layers.ts";

/** A run of the piece layer of one file, proven up to the root of the file. */
export interface LayerRange extends HashRange {
  /** Where its first hash belongs among those of all pieces, and how many of its hashes are of pieces: what follows behind the
   * end of a file stands for zeros. */
  readonly firstPiece: number;
  readonly pieceCount: number;
}

/** Which layer of a file's tree has a hash for each piece: so many above the leaves (BEP 52). */
export function pieceLevel(pieceLength: number): number {
  return levelsFor(pieceLength / LEAF_BYTES);
}

/** The runs that make up a piece layer: each as long as may be, at a multiple of its length; the last one no longer than its
 * pieces take, as libtorrent asks. */
export function layerRanges({ root, firstPiece, pieceCount }: PieceLayer, pieceLength: number): LayerRange[] {
  const ranges: LayerRange[] = [];
  const proofLayers = levelsFor(pieceCount) - 1;
  for (let index = 0; index < pieceCount; index += MAX_HASHES) {
    const left = Math.min(MAX_HASHES, pieceCount - index);
    // A run has two hashes at least.
    const length = Math.max(2, 2 ** levelsFor(left));
    const place = { firstPiece: firstPiece + index, pieceCount: left };
    ranges.push({ root, baseLayer: pieceLevel(pieceLength), index, length, proofLayers, ...place });
  }
  return ranges;
}

/** Whether these hashes (those of the range, then those of its proof) lead to the root of the file. */
export function isProven(range: LayerRange, hashes: Uint8Array, merkle: Merkle): boolean {
  const row = Array.from({ length: hashes.length / DIGEST_BYTES }, (_, i) =>
    hashes.subarray(i * DIGEST_BYTES, (i + 1) * DIGEST_BYTES),
  );
  const top = merkle.rootOf(row.slice(0, range.length), range.baseLayer);
  const root = merkle.climb(top, range.index / range.length, row.slice(range.length));
  return equalBytes(root, range.root);
}

/** Whether two ranges are the same as a message says them. */
export function isSameRange(a: HashRange, b: HashRange): boolean {
  return (
    a.index === b.index &&
    a.length === b.length &&
    a.baseLayer === b.baseLayer &&
    a.proofLayers === b.proofLayers &&
    equalBytes(a.root, b.root)
  );
}
