import { concatBytes, equalBytes, latin1Bytes } from "../base/bytes.ts";
import { type Infohash, infohashBytes } from "../base/ids.ts";
import { type Ed25519Sign, type Ed25519Verify, type Sha256, SIGNATURE_BYTES } from "../base/signature.ts";
import { cutPiece } from "./live-chunks.ts";
import { LIVE_HASH_BYTES, type PieceHeader } from "./live-header.ts";

/** Says what a signature is for, so that it counts for nothing else. */
const PIECE_PURPOSE = "sluice-piece:";

/** A header further in the future than this is not looked at. Clocks at home are minutes wrong, but a source that began
 * before its clock was set must not make all that it says later look old. */
export const MAX_AHEAD_MS = 600_000;
/** A header that much behind the newest one known is history, not a head. */
const MAX_BEHIND_MS = 30_000;

/** The first 20 bytes of a SHA-256. */
export function liveHash(bytes: Uint8Array, sha256: Sha256): Uint8Array {
  return sha256(bytes).subarray(0, LIVE_HASH_BYTES);
}

/** The hashes of all chunks of a piece, one after another, as a header has them. */
export function chunkHashesOf(
  piece: Uint8Array,
  stripeCount: number,
  sha256: Sha256,
): Uint8Array<ArrayBuffer> {
  return concatBytes(cutPiece(piece, stripeCount).map((chunk) => liveHash(chunk, sha256)));
}

/** Signs an encoded header in its place. */
export function signHeader(bytes: Uint8Array, infohash: Infohash, sign: Ed25519Sign): void {
  bytes.set(sign(signedBytes(bytes, infohash, PIECE_PURPOSE)), bytes.length - SIGNATURE_BYTES);
}

/** Whether the stream's key vouches for an encoded header. */
export function isSignedHeader(bytes: Uint8Array, infohash: Infohash, verify: Ed25519Verify): boolean {
  return verify(signedBytes(bytes, infohash, PIECE_PURPOSE), bytes.subarray(bytes.length - SIGNATURE_BYTES));
}

/** What is signed of a message that ends in its signature: the purpose, the stream, and all before the signature. */
export function signedBytes(bytes: Uint8Array, infohash: Infohash, purpose: string): Uint8Array<ArrayBuffer> {
  const body = bytes.subarray(0, bytes.length - SIGNATURE_BYTES);
  return concatBytes([latin1Bytes(purpose), infohashBytes(infohash), body]);
}

/** Whether a chunk is the one that the header names for its stripe. The caller has checked its length. */
export function isChunkOf(header: PieceHeader, stripe: number, chunk: Uint8Array, sha256: Sha256): boolean {
  const expected = header.chunkHashes.subarray(stripe * LIVE_HASH_BYTES, (stripe + 1) * LIVE_HASH_BYTES);
  return equalBytes(liveHash(chunk, sha256), expected);
}

/** Why a header cannot be the one that follows another of its epoch, or undefined where it can. It may have a number more
 * than one higher: what lies between was never made. Two signed headers that both follow one, or a signed one of the next
 * number that does not, show that the key is in two hands. */
export function chainProblem(
  previousBytes: Uint8Array,
  previous: PieceHeader,
  next: PieceHeader,
  sha256: Sha256,
): string | undefined {
  if (next.epoch !== previous.epoch || next.seq <= previous.seq) return "not a later piece";
  if (!equalBytes(next.previousHash, liveHash(previousBytes, sha256))) return "another piece came before it";
  if (next.timestampMs < previous.timestampMs) return "time goes backwards";
  const step = next.segment - previous.segment;
  if (step < 0) return "segments are counted backwards";
  return step > 1 && !next.isDiscontinuity ? "segments are left out" : undefined;
}

/** The order of pieces: by epoch, then by number. Negative where `a` comes first. */
export function comparePieces(
  a: { readonly epoch: number; readonly seq: number },
  b: { readonly epoch: number; readonly seq: number },
): number {
  return a.epoch - b.epoch || a.seq - b.seq;
}

/** Whether a header may be the head of a stream: neither from the future by our clock, nor far behind the newest that
 * was seen. One that may not is ignored; whoever sent it is not at fault, since clocks differ. */
export function isTimely(header: PieceHeader, nowUnixMs: number, newestMs: number | undefined): boolean {
  if (header.timestampMs > nowUnixMs + MAX_AHEAD_MS) return false;
  return newestMs === undefined || header.timestampMs >= newestMs - MAX_BEHIND_MS;
}
