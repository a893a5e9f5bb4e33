import type { ByteRange } from "../../base/range.ts";

/** Chunks consist of whole transport packets, so that a player can decode each chunk alone. */
const TS_PACKET_BYTES = 188;

/** Returns the size in bytes of the chunks of a piece: an equal share rounded up to whole packets. The last chunks may be shorter. */
export function chunkBytes(pieceBytes: number, stripeCount: number): number {
  return Math.ceil(pieceBytes / stripeCount / TS_PACKET_BYTES) * TS_PACKET_BYTES;
}

/** Returns the byte range of the chunk of `stripe` in its piece; empty if the piece is too short. */
export function chunkRange(pieceBytes: number, stripeCount: number, stripe: number): ByteRange {
  const size = chunkBytes(pieceBytes, stripeCount);
  return { start: Math.min(stripe * size, pieceBytes), end: Math.min((stripe + 1) * size, pieceBytes) };
}

/** Cuts a piece into chunks, one view per stripe; the last ones may be short or empty. */
export function cutPiece(piece: Uint8Array, stripeCount: number): Uint8Array[] {
  return Array.from({ length: stripeCount }, (_, stripe) => {
    const { start, end } = chunkRange(piece.length, stripeCount, stripe);
    return piece.subarray(start, end);
  });
}
