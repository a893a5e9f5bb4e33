import type { Bits } from "../base/bits.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Files } from "../runtime/contract.ts";
import {
  type CacheLayout,
  offsetInSegment,
  pieceBytes,
  piecesOfSegment,
  segmentName,
} from "./cache-layout.ts";

/** Limit of bytes read and hashed before content starts (about half a second); the rest is fetched again. */
const MAX_RECOVERED_BYTES = 256 * 1024 * 1024;
/** File times may be coarse, and the time in the record has a resolution of one second. */
const TIME_SLACK_MS = 2_000;

/** Inputs of {@link recoverPieces}. */
interface RecoveryOptions {
  readonly files: Files;
  /** The folder of the content. */
  readonly path: string;
  readonly layout: CacheLayout;
  readonly log: Log;
  readonly isGood: (piece: number, bytes: Uint8Array) => boolean;
}

/**
 * Updates `pieces` to match the files: clears pieces whose file is missing or too short, and verifies and sets pieces that were
 * written after the record (the program crashed). Unreadable files are removed.
 */
export async function recoverPieces(
  parts: RecoveryOptions,
  pieces: Bits,
  recordedAtMs: number,
): Promise<void> {
  const { files, path, layout, log } = parts;
  const names = new Set(await files.list(path));
  let budget = MAX_RECOVERED_BYTES;
  for (let segment = 0; segment < layout.segmentCount; segment++) {
    const name = segmentName(segment);
    const facts = names.has(name) ? await files.stat(`${path}/${name}`) : undefined;
    const size = facts?.size ?? 0;
    for (const piece of piecesOfSegment(layout, segment)) {
      if (offsetInSegment(layout, piece) + pieceBytes(layout, piece) > size) pieces.clear(piece);
    }
    if (facts === undefined || facts.modifiedMs < recordedAtMs - TIME_SLACK_MS) continue;
    try {
      budget = await verifySegment(parts, segment, size, pieces, budget);
    } catch (error) {
      log.warn("cannot read a cached file", { file: name, reason: messageOf(error) });
      for (const piece of piecesOfSegment(layout, segment)) pieces.clear(piece);
      await files.remove(`${path}/${name}`);
    }
  }
}

/** Verifies the pieces of a segment that are not in the record. Returns the remaining budget in bytes. */
async function verifySegment(
  { files, path, layout, isGood }: RecoveryOptions,
  segment: number,
  size: number,
  pieces: Bits,
  budgetBytes: number,
): Promise<number> {
  let budget = budgetBytes;
  const file = await files.open(`${path}/${segmentName(segment)}`);
  try {
    for (const piece of piecesOfSegment(layout, segment)) {
      const length = pieceBytes(layout, piece);
      const at = offsetInSegment(layout, piece);
      if (pieces.has(piece) || at + length > size || budget < length) continue;
      budget -= length;
      const bytes = new Uint8Array(length);
      await file.read(at, bytes);
      if (isGood(piece, bytes)) pieces.set(piece);
    }
  } finally {
    await file.close();
  }
  return budget;
}
