import { LIVE_HASH_BYTES } from "../../wire/live-header.ts";
import { MIN_SEGMENT_MS } from "../../wire/live-limits.ts";
import { MAX_AHEAD_MS } from "../../wire/live-trust.ts";
import type { SourceState } from "./identity-state.ts";

/** Where the numbers of a source go on. */
export interface SourceStart {
  readonly epoch: number;
  /** The hash of the header before; zeros where there is none in the epoch. */
  readonly previousHash: Uint8Array;
  /** No piece is numbered lower. */
  readonly leastSeq: number;
  /** The number of the first segment; undefined where the clock gives it. */
  readonly firstSegment: number | undefined;
  /** No piece is older, in UNIX ms. */
  readonly leastTimestampMs: number;
  /** It goes on from a piece that was made before. */
  readonly isContinued: boolean;
}

/** The state is on disk for good so often; a power cut takes back no more than twice that. */
export const STATE_SYNC_MS = 5000;

/**
 * Where a source goes on that is started at `nowMs`. After a power cut the state may be that of some seconds ago. No number is used
 * twice all the same, since pieces are numbered by the clock, and those that are ahead of it are reserved. Only where the
 * clock was set back it cannot vouch for that, and more numbers are left out than can have been used since.
 */
export function sourceStart(state: SourceState | undefined, nowMs: number, pieceMs: number): SourceStart {
  const nowSeconds = Math.floor(nowMs / 1000);
  // Made while the clock was wrong by far: nobody took those pieces, and nobody would for as long as it was ahead.
  const isFuture = state !== undefined && state.timestampMs > nowMs + MAX_AHEAD_MS;
  if (state === undefined || isFuture) {
    const isEpochUsable = state !== undefined && state.epoch <= nowSeconds + MAX_AHEAD_MS / 1000;
    const epoch = isEpochUsable ? Math.max(nowSeconds, state.epoch + 1) : nowSeconds;
    return {
      epoch,
      previousHash: new Uint8Array(LIVE_HASH_BYTES),
      leastSeq: 0,
      firstSegment: state && state.segment + 1 + lostCount(MIN_SEGMENT_MS),
      leastTimestampMs: epoch * 1000,
      isContinued: false,
    };
  }
  const isBack = nowMs < state.timestampMs;
  return {
    epoch: state.epoch,
    previousHash: state.headerHash,
    leastSeq: Math.max(state.seq, state.reservedSeq) + 1 + (isBack ? lostCount(pieceMs) : 0),
    firstSegment: state.segment + 1 + (isBack ? lostCount(MIN_SEGMENT_MS) : 0),
    leastTimestampMs: state.timestampMs + (isBack ? 2 * STATE_SYNC_MS : 0),
    isContinued: true,
  };
}

/** How many that take so long each may have been made since the state was written down for good. */
export function lostCount(eachMs: number): number {
  return Math.ceil((2 * STATE_SYNC_MS) / eachMs);
}
