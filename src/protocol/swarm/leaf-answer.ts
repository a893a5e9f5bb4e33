import { concatBytes } from "../../base/bytes.ts";
import { DIGEST_BYTES, LEAF_BYTES, levelsFor, type Merkle } from "../../base/merkle.ts";
import { type HashRange, MAX_HASHES } from "../../wire/peer/hash-message.ts";
import { LayerTree } from "./layer-tree.ts";

/** The largest piece that is read to answer a leaf request: the longest range covers all its leaves, and hashing it takes 6 to
 * 11 ms. */
const MAX_LEAF_PIECE_BYTES = MAX_HASHES * LEAF_BYTES;

/** Returns the piece, counted within the file, whose leaves a range requests (BEP 52). Undefined if the range requests another
 * level, spans several pieces, or is too long. `level` is the level of the piece layer above the leaves, `tree` the tree of the
 * file. */
export function leafPiece(range: HashRange, level: number, tree: LayerTree): number | undefined {
  const { baseLayer, index, length, proofLayers } = range;
  const perPiece = 2 ** level;
  // If pieces are leaves, the piece layer has them.
  if (baseLayer !== 0 || level === 0 || perPiece * LEAF_BYTES > MAX_LEAF_PIECE_BYTES) return undefined;
  const isRun = length > 0 && length <= perPiece && length === 2 ** levelsFor(length) && index % length === 0;
  const piece = Math.floor(index / perPiece);
  return isRun && tree.has(above(range, level, piece, proofLayers)) ? piece : undefined;
}

/** Returns the leaves of a range and their proof (BEP 52), from the verified `bytes` of the piece and the `tree` of the file.
 * `leafPiece` must accept the range. */
export function leafAnswer(
  range: HashRange,
  level: number,
  { tree, bytes, merkle }: { readonly tree: LayerTree; readonly bytes: Uint8Array; readonly merkle: Merkle },
): Uint8Array<ArrayBuffer> {
  const { index, proofLayers } = range;
  const perPiece = 2 ** level;
  // Leaves behind the end of the file are zeros.
  const leaves = new Uint8Array(perPiece * DIGEST_BYTES);
  leaves.set(concatBytes(merkle.leavesOf(bytes)));
  const ofPiece = new LayerTree(leaves, 0, merkle);
  const inside = { ...range, index: index % perPiece, proofLayers: Math.min(proofLayers, level - 1) };
  const outside = tree.answer(above(range, level, Math.floor(index / perPiece), proofLayers))!;
  // The requester computes the hash of the piece itself from the leaves.
  const uncles = proofLayers < level ? outside.subarray(0, 0) : outside.subarray(DIGEST_BYTES);
  return concatBytes([ofPiece.answer(inside)!, uncles]);
}

/** The part of a range's proof above its piece: the hash of the piece, with as many proof layers as requested. */
function above({ root }: HashRange, level: number, piece: number, proofLayers: number): HashRange {
  return { root, baseLayer: level, index: piece, length: 1, proofLayers: Math.max(0, proofLayers - level) };
}
