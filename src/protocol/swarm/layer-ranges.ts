import { equalBytes } from "../../base/bytes.ts";
import { DIGEST_BYTES, LEAF_BYTES, levelsFor, type Merkle } from "../../base/merkle.ts";
import { type HashRange, MAX_HASHES } from "../../wire/peer/hash-message.ts";
import type { PieceLayer } from "../../wire/torrent/piece-layers.ts";

/** A range of one file's piece layer with its proof up to the root of the file (BEP 52). */
export interface LayerRange extends HashRange {
  /** Index of the first piece among all pieces of the content, and how many hashes belong to pieces. The remaining hashes lie
   * behind the end of the file and stand for zeros. */
  readonly firstPiece: number;
  readonly pieceCount: number;
}

/** Returns the tree level that has one hash per piece, counted from the leaves (BEP 52). `pieceLength` in bytes. */
export function pieceLevel(pieceLength: number): number {
  return levelsFor(pieceLength / LEAF_BYTES);
}

/** Splits a piece layer into ranges of the maximum length, each aligned to its length; the last one is as short as its pieces
 * allow, as libtorrent requests it. */
export function layerRanges({ root, firstPiece, pieceCount }: PieceLayer, pieceLength: number): LayerRange[] {
  const ranges: LayerRange[] = [];
  const proofLayers = levelsFor(pieceCount) - 1;
  for (let index = 0; index < pieceCount; index += MAX_HASHES) {
    const left = Math.min(MAX_HASHES, pieceCount - index);
    // The minimum length is two (BEP 52).
    const length = Math.max(2, 2 ** levelsFor(left));
    const place = { firstPiece: firstPiece + index, pieceCount: left };
    ranges.push({ root, baseLayer: pieceLevel(pieceLength), index, length, proofLayers, ...place });
  }
  return ranges;
}

/** Whether `hashes` (those of the range, then those of its proof) lead to the root of the file. */
export function isProven(range: LayerRange, hashes: Uint8Array, merkle: Merkle): boolean {
  const row = Array.from({ length: hashes.length / DIGEST_BYTES }, (_, i) =>
    hashes.subarray(i * DIGEST_BYTES, (i + 1) * DIGEST_BYTES),
  );
  const top = merkle.rootOf(row.slice(0, range.length), range.baseLayer);
  const root = merkle.rootFromProof(top, range.index / range.length, row.slice(range.length));
  return equalBytes(root, range.root);
}

/** Whether two ranges have the same fields in a message. */
export function isSameRange(a: HashRange, b: HashRange): boolean {
  return (
    a.index === b.index &&
    a.length === b.length &&
    a.baseLayer === b.baseLayer &&
    a.proofLayers === b.proofLayers &&
    equalBytes(a.root, b.root)
  );
}
