import { latin1Text } from "../../base/bytes.ts";
import { DIGEST_BYTES } from "../../base/merkle.ts";

/** The piece layer of one file (BEP 52): which pieces it covers. A file of one piece has no layer; its root is the piece hash. */
export interface PieceLayer {
  readonly root: Uint8Array;
  readonly firstPiece: number;
  readonly pieceCount: number;
}

/** Size of a layer in a transport file besides its hashes: the root and two length prefixes. */
const KEY_BYTES = DIGEST_BYTES + 16;

/** Returns the size in bytes of the `piece layers` dictionary of a transport file. */
export function layersBytes(layers: readonly PieceLayer[]): number {
  return layers.reduce((sum, { pieceCount }) => sum + KEY_BYTES + pieceCount * DIGEST_BYTES, 0);
}

/** Builds the `piece layers` dictionary of a transport file from all piece hashes; undefined if no file has a layer. */
export function pieceLayersByRoot(
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
