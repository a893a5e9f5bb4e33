import { concatBytes } from "../base/bytes.ts";
import { DIGEST_BYTES, LEAF_BYTES, levelsFor, type Merkle } from "../base/merkle.ts";
import { type HashRange, MAX_HASHES } from "../wire/hash-message.ts";
import { LayerTree } from "./layer-tree.ts";

/** The largest pieces that are read for their leaves: a run as long as is answered has all of those, and to hash one takes 6
 * to 11 ms. */
const MAX_LEAF_PIECE_BYTES = MAX_HASHES * LEAF_BYTES;

/** Which piece of a file the leaves of a range are of (BEP 52), counted within the file; undefined where it asks for something
 * else, for what more than one piece has, or for more than is answered. `level` is how many levels pieces are above leaves,
 * `tree` is that of their file. */
export function leafPiece(range: HashRange, level: number, tree: LayerTree): number | undefined {
  const { baseLayer, index, length, proofLayers } = range;
  const perPiece = 2 ** level;
  // Where pieces are leaves their layer has them.
  if (baseLayer !== 0 || level === 0 || perPiece * LEAF_BYTES > MAX_LEAF_PIECE_BYTES) return undefined;
  const isRun = length > 0 && length <= perPiece && length === 2 ** levelsFor(length) && index % length === 0;
  const piece = Math.floor(index / perPiece);
  return isRun && tree.has(above(range, level, piece, proofLayers)) ? piece : undefined;
}

/** The leaves of a range, and their proof: out of the bytes of their piece (verified, and shorter at the end of the file), and
 * out of the tree of the file. The range is one that `leafPiece` takes. */
export function leafAnswer(
  range: HashRange,
  level: number,
  { tree, bytes, merkle }: { readonly tree: LayerTree; readonly bytes: Uint8Array; readonly merkle: Merkle },
): Uint8Array<ArrayBuffer> {
  const { index, proofLayers } = range;
  const perPiece = 2 ** level;
  // What lies behind the end of the file counts as zeros.
  const leaves = new Uint8Array(perPiece * DIGEST_BYTES);
  leaves.set(concatBytes(merkle.leavesOf(bytes)));
  const ofPiece = new LayerTree(leaves, 0, merkle);
  const inside = { ...range, index: index % perPiece, proofLayers: Math.min(proofLayers, level - 1) };
  const outside = tree.answer(above(range, level, Math.floor(index / perPiece), proofLayers))!;
  // The hash of the piece itself follows from its leaves.
  const uncles = proofLayers < level ? outside.subarray(0, 0) : outside.subarray(DIGEST_BYTES);
  return concatBytes([ofPiece.answer(inside)!, uncles]);
}

/** What of a range is above the leaves of its piece: the hash of that, with as much proof as is asked for. */
function above({ root }: HashRange, level: number, piece: number, proofLayers: number): HashRange {
  return { root, baseLayer: level, index: piece, length: 1, proofLayers: Math.max(0, proofLayers - level) };
}
