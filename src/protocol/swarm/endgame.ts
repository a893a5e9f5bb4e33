import type { Downloads } from "./downloads.ts";
import type { PartialPiece } from "./partial-piece.ts";
import type { Peer } from "./peer.ts";
import type { Picker } from "./picker.ts";
import type { SwarmState } from "./state.ts";

/** Peers that one urgent block is requested from: the late one, a replacement, and one more if that is late, too. */
const MAX_REQUESTERS = 3;
/** A block that is not late is requested twice only if the other peer is this much faster. */
const GAIN_MS = 50;
/** A peer that completes no block for this time while it owes some has stalled. Ten times a usual answer. */
const STALL_MS = 4_000;
/** Duplicate requests in one round, nearest to a reader first; the rest follow in the next round. */
const MAX_DUPLICATES = 64;

/** Requests late urgent blocks from further peers (end-game mode, for the urgent window only). */
export class Endgame {
  readonly #state: SwarmState;
  readonly #downloads: Downloads;
  readonly #picker: Picker;

  constructor(state: SwarmState, downloads: Downloads, picker: Picker) {
    this.#state = state;
    this.#downloads = downloads;
    this.#picker = picker;
  }

  /** Detects stalled peers, and requests late urgent blocks from others. */
  round(): void {
    const { now } = this.#state;
    for (const peer of this.#state.peers.values()) {
      const isOwing = peer.requests.pending > 0;
      if (!isOwing || now - peer.requests.lastProgressAt < Math.max(STALL_MS, 2 * peer.requests.delayMs))
        continue;
      peer.snubbedSince ??= now;
      peer.isSnubbing = true;
      this.#downloads.release(peer);
      peer.requests.collapse();
    }
    this.#duplicateUrgent();
  }

  #duplicateUrgent(): void {
    const { pieces, wants } = this.#state;
    if (!pieces) return;
    const able: Peer[] = [];
    for (const peer of this.#state.peers.values()) {
      if (peer.canRequestAny && !peer.isSnubbing) able.push(peer);
    }
    if (able.length < 1) return;
    let left = MAX_DUPLICATES;
    for (const piece of wants.urgent) {
      const partial = pieces.partials.get(piece);
      if (!partial || partial.isComplete) continue;
      for (let block = 0; block < partial.blockCount && left > 0; block++) {
        if (partial.done[block] !== 0 || partial.requesters[block] === 0) continue;
        if (this.#duplicate(partial, block, able)) left--;
      }
      if (left === 0) return;
    }
  }

  #duplicate(partial: PartialPiece, block: number, able: readonly Peer[]): boolean {
    const { now } = this.#state;
    const dueInMs = partial.dueAt[block]! - now;
    const isLate = dueInMs <= 0;
    if (partial.requesters[block]! >= (isLate ? MAX_REQUESTERS : 2)) return false;
    let best: Peer | undefined;
    let bestEta = isLate ? Number.POSITIVE_INFINITY : (dueInMs - GAIN_MS) / 2;
    for (const peer of able) {
      const eta = peer.etaMs(now);
      if (eta >= bestEta || peer.connection === partial.requestedFrom[block]) continue;
      if (!peer.canRequest(partial.index)) continue;
      if (peer.requests.find(partial.index, block) >= 0) continue;
      best = peer;
      bestEta = eta;
    }
    return best !== undefined && this.#picker.request(best, partial, block);
  }
}
