import { concatBytes, equalBytes, latin1Bytes } from "../../base/bytes.ts";
import { type Infohash, infohashBytes } from "../../base/ids.ts";
import { type Ed25519Sign, type Ed25519Verify, type Sha256, SIGNATURE_BYTES } from "../../base/signature.ts";
import { cutPiece } from "./chunks.ts";
import { LIVE_HASH_BYTES, type PieceHeader } from "./header.ts";

/** Prefix of the signed message, so that the signature is valid for this purpose only. */
const PIECE_PURPOSE = "sluice-piece:";

/** Headers further in the future are ignored. Clocks of viewers may be minutes off, but a source that started before its clock was
 * set must not make its later headers look old. */
export const MAX_AHEAD_MS = 600_000;
/** Headers further behind the newest known header are not a current position of the stream. */
const MAX_BEHIND_MS = 30_000;

/** Returns the first 20 bytes of the SHA-256. */
export function liveHash(bytes: Uint8Array, sha256: Sha256): Uint8Array {
  return sha256(bytes).subarray(0, LIVE_HASH_BYTES);
}

/** Returns the concatenated hashes of all chunks of a piece, as in a header. */
export function chunkHashesOf(
  piece: Uint8Array,
  stripeCount: number,
  sha256: Sha256,
): Uint8Array<ArrayBuffer> {
  return concatBytes(cutPiece(piece, stripeCount).map((chunk) => liveHash(chunk, sha256)));
}

/** Signs an encoded header in place. */
export function signHeader(bytes: Uint8Array, infohash: Infohash, sign: Ed25519Sign): void {
  bytes.set(sign(signedBytes(bytes, infohash, PIECE_PURPOSE)), bytes.length - SIGNATURE_BYTES);
}

/** Returns true if the signature of an encoded header is valid. */
export function isSignedHeader(bytes: Uint8Array, infohash: Infohash, verify: Ed25519Verify): boolean {
  return verify(signedBytes(bytes, infohash, PIECE_PURPOSE), bytes.subarray(bytes.length - SIGNATURE_BYTES));
}

/** Returns the signed part of a message that ends with its signature: purpose, infohash, and all bytes before the signature. */
export function signedBytes(bytes: Uint8Array, infohash: Infohash, purpose: string): Uint8Array<ArrayBuffer> {
  const body = bytes.subarray(0, bytes.length - SIGNATURE_BYTES);
  return concatBytes([latin1Bytes(purpose), infohashBytes(infohash), body]);
}

/** Returns true if a chunk matches the hash of its stripe in the header. The caller has checked its length. */
export function isChunkOf(header: PieceHeader, stripe: number, chunk: Uint8Array, sha256: Sha256): boolean {
  const expected = header.chunkHashes.subarray(stripe * LIVE_HASH_BYTES, (stripe + 1) * LIVE_HASH_BYTES);
  return equalBytes(liveHash(chunk, sha256), expected);
}

/** Compares two pieces by epoch, then by number; negative if `a` comes first. */
export function comparePieces(
  a: { readonly epoch: number; readonly seq: number },
  b: { readonly epoch: number; readonly seq: number },
): number {
  return a.epoch - b.epoch || a.seq - b.seq;
}

/** Returns true if a header may be the current end of the stream: not in the future, and not far behind the newest header seen.
 * Other headers are ignored without blaming the sender, since clocks differ. */
export function isTimely(header: PieceHeader, nowUnixMs: number, newestMs: number | undefined): boolean {
  if (header.timestampMs > nowUnixMs + MAX_AHEAD_MS) return false;
  return newestMs === undefined || header.timestampMs >= newestMs - MAX_BEHIND_MS;
}
