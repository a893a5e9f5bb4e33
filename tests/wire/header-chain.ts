import { equalBytes } from "../../src/base/bytes.ts";
import type { Sha256 } from "../../src/base/signature.ts";
import type { PieceHeader } from "../../src/wire/live/header.ts";
import { liveHash } from "../../src/wire/live/trust.ts";

/** Returns why a header cannot follow `previous` in its epoch, or undefined if it can. Its number may skip pieces that the source
 * never made. Two signed headers with the same predecessor, or a signed next header that does not follow, show that two sources
 * use the same key. */
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
