import { concatBytes, equalBytes } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Ed25519Verify, Sha256 } from "../../base/signature.ts";
import type { WholePiece } from "../../protocol/live/contract.ts";
import { cutPiece } from "../../wire/live/chunks.ts";
import { decodeHeader, headerBytes, type PieceHeader } from "../../wire/live/header.ts";
import type { LiveTransportFile } from "../../wire/live/transport-file.ts";
import { comparePieces, isChunkOf, isSignedHeader, liveHash } from "../../wire/live/trust.ts";

/** Signatures that are checked, 2 ms each in a browser. A header without a gap after it needs none, because the next one contains its hash. */
const MAX_SIGNATURES = 50;

/** A piece as it is stored and sent: its signed header, and its bytes. */
export interface StoredPiece {
  readonly header: Uint8Array;
  readonly media: Uint8Array;
}

/** Encodes pieces one after the other: each as its signed header, which contains the length, and its bytes. */
export function encodePieces(pieces: readonly StoredPiece[]): Uint8Array<ArrayBuffer> {
  return concatBytes(pieces.flatMap(({ header, media }) => [header, media]));
}

/** Decodes what {@link encodePieces} wrote, up to the first piece that is invalid or incomplete. Verifies nothing. */
export function decodePieces(bytes: Uint8Array, file: LiveTransportFile): readonly StoredPiece[] {
  const length = headerBytes(file.info.stripeCount);
  const pieces: StoredPiece[] = [];
  for (let at = 0; at + length <= bytes.length; ) {
    const header = bytes.subarray(at, at + length);
    const value = headerIn(header, file);
    at += length;
    if (!value || at + value.pieceBytes > bytes.length) break;
    pieces.push({ header, media: bytes.subarray(at, at + value.pieceBytes) });
    at += value.pieceBytes;
  }
  return pieces;
}

/** What verifies the pieces of a stream. */
export interface PieceVerification {
  readonly file: LiveTransportFile;
  readonly verify: Ed25519Verify;
  readonly sha256: Sha256;
}

/** Returns the genuine pieces in order, each once. */
export function verifiedPieces(
  stored: readonly StoredPiece[],
  { file, sha256, verify }: PieceVerification,
): readonly WholePiece[] {
  const { info, infohash } = file;
  const known = new Map<string, { readonly value: PieceHeader; readonly stored: StoredPiece }>();
  for (const each of stored) {
    const value = headerIn(each.header, file);
    if (value) known.set(`${value.epoch} ${value.seq}`, { value, stored: each });
  }
  const newestFirst = [...known.values()].sort((a, b) => comparePieces(b.value, a.value));
  const pieces: WholePiece[] = [];
  let signatures = 0;
  let previousHash: Uint8Array | undefined;
  for (const { value, stored } of newestFirst) {
    const bytes = stored.header;
    const isNamed = previousHash !== undefined && equalBytes(liveHash(bytes, sha256), previousHash);
    if (!isNamed && (signatures++ >= MAX_SIGNATURES || !isSignedHeader(bytes, infohash, verify))) continue;
    previousHash = value.previousHash;
    const chunks = cutPiece(stored.media, info.stripeCount);
    if (
      stored.media.length === value.pieceBytes &&
      chunks.every((chunk, stripe) => chunk.length === 0 || isChunkOf(value, stripe, chunk, sha256))
    )
      pieces.push({ header: { value, bytes }, chunks });
  }
  return pieces.reverse();
}

function headerIn(bytes: Uint8Array, { info }: LiveTransportFile): PieceHeader | undefined {
  try {
    return decodeHeader(bytes, info);
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}
