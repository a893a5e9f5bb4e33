import { type Random, randomBelow } from "../../base/random.ts";
import { LIVE_HASH_BYTES, type PieceHeader } from "../../wire/live-header.ts";
import { MAX_AHEAD_MS } from "../../wire/live-trust.ts";
import type { SourceStart } from "./broadcast-start.ts";
import type { SourceState } from "./identity-state.ts";

/** What a source that takes over knows of the stream. */
export interface TakeoverFacts {
  /** The newest genuine header; undefined where none was ever heard. */
  readonly seen: Pick<PieceHeader, "epoch" | "timestampMs" | "segment"> | undefined;
  /** Of our own last life, or of the machine that the folder was copied from. */
  readonly state: SourceState | undefined;
  readonly nowMs: number;
  readonly random: Random;
}

/** Two that take over at the same moment choose the same one of so many epochs by chance alone. */
const SPREAD_SECONDS = 8;

/**
 * How a source begins that goes on air in the place of another: always in an epoch of its own, later than all that was heard of. Epochs
 * are seconds, so two that take over in the same second would have the same one: each takes one of the last seconds, by chance,
 * and the one with the later epoch stays. Time goes on from the newest piece, also where that one's clock is ahead of ours: viewers take
 * nothing from before.
 */
export function takeoverStart({ seen, state, nowMs, random }: TakeoverFacts): SourceStart {
  const nowSeconds = Math.floor(nowMs / 1000);
  // One from further ahead was made by a wrong clock.
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
