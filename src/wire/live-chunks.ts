import type { ByteRange } from "../base/range.ts";
import { FRAGMENT_BYTES } from "./live-limits.ts";

/** Chunks are whole transport packets, so that each can be handed to a player alone. */
const TS_PACKET_BYTES = 188;

/** The size of every chunk of a piece but the last ones, in bytes: an equal part, rounded up to whole packets. */
export function chunkBytes(pieceBytes: number, stripeCount: number): number {
  return Math.ceil(pieceBytes / stripeCount / TS_PACKET_BYTES) * TS_PACKET_BYTES;
}

/** Where the chunk of a stripe lies in its piece; empty where the piece is too short to have one. */
export function chunkRange(pieceBytes: number, stripeCount: number, stripe: number): ByteRange {
  const size = chunkBytes(pieceBytes, stripeCount);
  return { start: Math.min(stripe * size, pieceBytes), end: Math.min((stripe + 1) * size, pieceBytes) };
}

/** The chunks of a piece, one for each stripe, as views; the last ones may be short or empty. */
export function cutPiece(piece: Uint8Array, stripeCount: number): Uint8Array[] {
  return Array.from({ length: stripeCount }, (_, stripe) => {
    const { start, end } = chunkRange(piece.length, stripeCount, stripe);
    return piece.subarray(start, end);
  });
}

/** Into how many messages a chunk goes: one for each 16 KiB begun, none for an empty one. */
export function fragmentCount(chunkLength: number): number {
  return Math.ceil(chunkLength / FRAGMENT_BYTES);
}
