import { equalBytes } from "../../base/bytes.ts";
import type { Sha1 } from "../../base/ids.ts";
import { DIGEST_BYTES, LEAF_BYTES, levelsFor, Merkle } from "../../base/merkle.ts";
import type { Sha256 } from "../../base/signature.ts";
import type { SwarmLayout } from "./contract.ts";

/** Whether `bytes` match the hash of a piece. */
export type PieceCheck = (layout: SwarmLayout, piece: number, bytes: Uint8Array) => boolean;

const SHA1_BYTES = 20;

/** Returns the check of pieces: SHA-1 of the whole piece (BEP 3), or the Merkle tree of its file (BEP 52). */
export function pieceCheck(sha1: Sha1, sha256: Sha256): PieceCheck {
  const merkle = new Merkle(sha256);
  return (layout, piece, bytes) => {
    const { pieceHashes, shortPieces } = layout;
    if (!shortPieces)
      return equalBytes(sha1(bytes), pieceHashes.subarray(piece * SHA1_BYTES, (piece + 1) * SHA1_BYTES));
    const expected = pieceHashes.subarray(piece * DIGEST_BYTES, (piece + 1) * DIGEST_BYTES);
    const root = merkle.rootOfBytes(bytes);
    // A file of one piece has a tree as high as the file needs; other pieces are padded to the height of a whole piece.
    if (equalBytes(root, expected)) return true;
    const levels = levelsFor(Math.ceil(bytes.length / LEAF_BYTES));
    const whole = levelsFor(layout.pieceLength / LEAF_BYTES);
    return levels < whole && equalBytes(merkle.padRoot(root, levels, whole), expected);
  };
}

/** Returns the length of a piece: the last piece of the content may be shorter, in version 2 the last piece of each file. */
export function pieceBytesOf(
  { pieceLength, length, shortPieces }: Pick<SwarmLayout, "pieceLength" | "length" | "shortPieces">,
  piece: number,
): number {
  return shortPieces?.get(piece) ?? Math.min(pieceLength, length - piece * pieceLength);
}
