import { PROBATION_CHUNKS } from "./limits.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** The parent of one stripe, and the peer that is to replace it. */
export interface Feed {
  parent: LivePeer | undefined;
  since: number;
  /** The parent has taken the place of a proven one, which gave our place away. */
  hasReplacedProven: boolean;
  lastChunkAt: number;
  lastSeq: number;
  /** The first piece that the parent promised; older ones are pulled. */
  promisedSeq: number;
  /** Chunks received from this parent since it was chosen. */
  chunks: number;
  /** The peer that was asked and has not sent a chunk yet. */
  next: LivePeer | undefined;
  nextSince: number;
  isNextAccepted: boolean;
  /** Consecutive chunks from it, and the newest one, while another parent delivers. */
  nextChunks: number;
  nextSeq: number;
  refusals: number;
  /** How often a parent of the stripe has failed since one has proved itself. */
  failures: number;
  /** The parent has given our place to another child, or breaks its promises: another one is sought while it serves us. */
  isDisplaced: boolean;
  orphanedAt: number;
}

/** Returns the feed of a stripe without a parent, since `now`. */
export function orphan(now: number): Feed {
  return {
    parent: undefined,
    since: 0,
    hasReplacedProven: false,
    lastChunkAt: 0,
    lastSeq: -1,
    promisedSeq: 0,
    chunks: 0,
    next: undefined,
    nextSince: 0,
    isNextAccepted: false,
    nextChunks: 0,
    nextSeq: -1,
    refusals: 0,
    failures: 0,
    isDisplaced: false,
    orphanedAt: now,
  };
}

/** Returns the bits of a SUB: the 32 numbers from `startSeq` on for which `has` is true. */
export function bitsOf(startSeq: number, has: (seq: number) => boolean): number {
  let bits = 0;
  for (let i = 0; i < 32; i++) if (has(startSeq + i)) bits |= 1 << i;
  return bits >>> 0;
}

/** Whether the parent may be hostile: it is not proven, and a proven one gave our place to it, or a parent of the stripe has
 * failed before it. */
export function isDoubtful({ parent, failures, hasReplacedProven }: Feed): boolean {
  return parent !== undefined && !parent.isProven && (failures > 0 || hasReplacedProven);
}

/** Records chunk `seq` from the next parent. Returns whether that peer may take over: at once if no parent of the stripe has
 * failed lately and the peer has broken no promise, because two parents at once cost upload that is scarce in a crowd.
 * Otherwise an unproven peer replaces a parent that delivers only after some consecutive chunks. A parent that has given
 * our place away lacks the upload to wait. */
export function hasPassed({ window, now }: LiveState, feed: Feed, stripe: number, seq: number): boolean {
  const { isProven, brokenPromises, failures } = feed.next!;
  const isSuspect = feed.failures > 0 || brokenPromises > 0 || failures > 0;
  if (isProven || !isSuspect || !feed.parent || feed.isDisplaced) return true;
  if (seq <= feed.nextSeq) return false;
  const owed = window.firstOwed(stripe, feed.nextSeq);
  feed.nextChunks = owed && owed.seq < seq ? 1 : feed.nextChunks + 1;
  feed.nextSeq = seq;
  feed.nextSince = now;
  return feed.nextChunks >= PROBATION_CHUNKS;
}
