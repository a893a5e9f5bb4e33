import { latin1Text } from "../base/bytes.ts";
import { DIGEST_BYTES } from "../base/merkle.ts";

/** Where the hashes of the pieces of one file are, whose tree has this root (BEP 52). Files of one piece have no layer: the
 * root is the hash. */
export interface PieceLayer {
  readonly root: Uint8Array;
  readonly firstPiece: number;
  readonly pieceCount: number;
}

/** What each layer takes in a transport file besides its hashes: the root, and two lengths. */
const KEY_BYTES = DIGEST_BYTES + 16;

/** The piece layers of all files as a transport file has them take so many bytes. */
export function layersBytes(layers: readonly PieceLayer[]): number {
  return layers.reduce((sum, { pieceCount }) => sum + KEY_BYTES + pieceCount * DIGEST_BYTES, 0);
}

/** The `piece layers` of a transport file, out of the hashes of all pieces; undefined where no file has one. */
export function piecesByRoot(
  layers: readonly PieceLayer[],
  pieceHashes: Uint8Array,
): ReadonlyMap<string, Uint8Array> | undefined {
  if (layers.length === 0) return undefined;
  return new Map(
    layers.map(({ root, firstPiece, pieceCount }) => [
      latin1Text(root),
      pieceHashes.subarray(firstPiece * DIGEST_BYTES, (firstPiece + pieceCount) * DIGEST_BYTES),
    ]),
  );
}
