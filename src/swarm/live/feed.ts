import type { LivePeer } from "./peer.ts";

/** Who gives us one stripe, and who is to take over. */
export interface Feed {
  parent: LivePeer | undefined;
  since: number;
  lastChunkAt: number;
  lastSeq: number;
  /** What is older does not come by itself. */
  promisedSeq: number;
  /** Chunks of this parent since it was chosen. */
  chunks: number;
  /** Asked, or said yes, and not given a chunk yet. */
  next: LivePeer | undefined;
  nextSince: number;
  isNextAccepted: boolean;
  refusals: number;
  /** The parent has given our place to another. */
  isDisplaced: boolean;
  orphanedAt: number;
}

/** A stripe that nobody gives, since `now`. */
export function orphan(now: number): Feed {
  return {
    parent: undefined,
    since: 0,
    lastChunkAt: 0,
    lastSeq: -1,
    promisedSeq: 0,
    chunks: 0,
    next: undefined,
    nextSince: 0,
    isNextAccepted: false,
    refusals: 0,
    isDisplaced: false,
    orphanedAt: now,
  };
}
