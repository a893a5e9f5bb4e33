import { type Random, randomBelow } from "../../base/random.ts";
import { LIVE_HASH_BYTES, type PieceHeader } from "../../wire/live/header.ts";
import { MIN_SEGMENT_MS } from "../../wire/live/limits.ts";
import { MAX_AHEAD_MS } from "../../wire/live/trust.ts";
import type { SourceState } from "./identity-state.ts";

/** Where the numbering of a source starts. */
export interface SourceStart {
  readonly epoch: number;
  /** The hash of the previous header; zeros at the start of an epoch. */
  readonly previousHash: Uint8Array;
  /** The lowest number of the next piece. */
  readonly leastSeq: number;
  /** The number of the first segment; undefined to derive it from the clock. */
  readonly firstSegment: number | undefined;
  /** The earliest time of the next piece, in UNIX ms. */
  readonly leastTimestampMs: number;
  /** It continues after an earlier piece. */
  readonly isContinued: boolean;
}

/** Interval at which the state is synced to disk; a power cut loses at most twice that. */
export const STATE_SYNC_MS = 5000;

/**
 * Returns where a source that starts at `nowMs` continues. After a power cut its state may be some seconds old.
 * Numbers are still never used twice, because pieces are numbered by the clock, and numbers ahead of it are reserved
 * on disk. If the clock was set back, more numbers are skipped than can have been used since.
 */
export function sourceStart(state: SourceState | undefined, nowMs: number, pieceMs: number): SourceStart {
  const nowSeconds = Math.floor(nowMs / 1000);
  // The clock was far ahead when these were made: peers have rejected those pieces, and would reject more.
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

/** Returns how many items of `eachMs` may have been made since the last sync. */
export function lostCount(eachMs: number): number {
  return Math.ceil((2 * STATE_SYNC_MS) / eachMs);
}

/** What is known when a source takes over. */
export interface TakeoverFacts {
  /** The newest genuine header; undefined if none was received. */
  readonly seen: Pick<PieceHeader, "epoch" | "timestampMs" | "segment"> | undefined;
  /** The state of our last run, or of the machine from which the folder was copied. */
  readonly state: SourceState | undefined;
  readonly nowMs: number;
  readonly random: Random;
}

/** Sources that take over at the same moment choose among this many epochs at random. */
const SPREAD_SECONDS = 8;

/**
 * Returns how a source starts in place of another one: in a new epoch, later than all known ones. Epochs are seconds,
 * so two sources that take over in the same second might choose the same one: each chooses one of the last seconds at
 * random, and the later epoch wins. Timestamps continue from the newest piece, even if its clock is ahead of ours,
 * because viewers reject earlier ones.
 */
export function takeoverStart({ seen, state, nowMs, random }: TakeoverFacts): SourceStart {
  const nowSeconds = Math.floor(nowMs / 1000);
  // A state further ahead was written with a wrong clock.
  const isStateUsable = state !== undefined && state.timestampMs <= nowMs + MAX_AHEAD_MS;
  const known = Math.max(seen?.epoch ?? 0, isStateUsable ? state.epoch : 0);
  const free = Math.min(SPREAD_SECONDS, nowSeconds - known);
  const epoch = free > 0 ? nowSeconds - randomBelow(random, free) : known + 1;
  return {
    epoch,
    previousHash: new Uint8Array(LIVE_HASH_BYTES),
    leastSeq: 0,
    firstSegment: seen && seen.segment + 1,
    leastTimestampMs: Math.max(epoch * 1000, seen?.timestampMs ?? 0),
    isContinued: seen !== undefined || state !== undefined,
  };
}
