import { equalBytes } from "../base/bytes.ts";
import type { Sha1 } from "../base/ids.ts";
import { DIGEST_BYTES, LEAF_BYTES, levelsFor, Merkle } from "../base/merkle.ts";
import type { Sha256 } from "../base/signature.ts";
import type { SwarmLayout } from "./contract.ts";

/** Whether `bytes` are those of a piece. */
export type PieceCheck = (layout: SwarmLayout, piece: number, bytes: Uint8Array) => boolean;

const SHA1_BYTES = 20;

/** The check of pieces: by SHA-1 of the whole (BEP 3), or by the Merkle trees of files (BEP 52). */
export function pieceCheck(sha1: Sha1, sha256: Sha256): PieceCheck {
  const merkle = new Merkle(sha256);
  return (layout, piece, bytes) => {
    const { pieceHashes, shortPieces } = layout;
    if (!shortPieces)
      return equalBytes(sha1(bytes), pieceHashes.subarray(piece * SHA1_BYTES, (piece + 1) * SHA1_BYTES));
    const expected = pieceHashes.subarray(piece * DIGEST_BYTES, (piece + 1) * DIGEST_BYTES);
    const root = merkle.rootOfBytes(bytes);
    // That of a file of one piece has no more levels than the file takes, that of the end of a longer one those of a piece.
    if (equalBytes(root, expected)) return true;
    const levels = levelsFor(Math.ceil(bytes.length / LEAF_BYTES));
    const whole = levelsFor(layout.pieceLength / LEAF_BYTES);
    return levels < whole && equalBytes(merkle.grow(root, levels, whole), expected);
  };
}

/** The length of a piece: the last one of the content may be shorter, and in version 2 that of each file. */
export function pieceBytesOf(
  { pieceLength, length, shortPieces }: Pick<SwarmLayout, "pieceLength" | "length" | "shortPieces">,
  piece: number,
): number {
  return shortPieces?.get(piece) ?? Math.min(pieceLength, length - piece * pieceLength);
}
