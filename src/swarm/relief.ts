import type { Downloads } from "./downloads.ts";
import type { PartialPiece } from "./partial-piece.ts";
import type { Peer } from "./peer.ts";
import type { Picker } from "./picker.ts";
import type { SwarmState } from "./state.ts";

/** Peers that owe the same urgent block at once: one late, one asked instead, one more if that one is late too. */
const MAX_ASKERS = 3;
/** Another peer must be this much sooner before a block that is not late is asked twice. */
const GAIN_MS = 50;
/** No whole block for so long while some are owed: the peer stalls. Ten times a usual answer. */
const STALL_MS = 4_000;
/** Blocks asked twice in one round: the urgent ones nearest to a reader; the rest gets its turn in the next. */
const MAX_RELIEVED = 64;

/** Sees that no urgent block waits for a peer that is late with it (end-game, for the urgent window only). */
export class Relief {
  readonly #state: SwarmState;
  readonly #downloads: Downloads;
  readonly #picker: Picker;

  constructor(state: SwarmState, downloads: Downloads, picker: Picker) {
    this.#state = state;
    this.#downloads = downloads;
    this.#picker = picker;
  }

  /** Finds peers that stall, and asks others for the urgent blocks that are late. */
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
    this.#relieveUrgent();
  }

  #relieveUrgent(): void {
    const { pieces, wants } = this.#state;
    if (!pieces) return;
    const able: Peer[] = [];
    for (const peer of this.#state.peers.values()) {
      if (peer.mayGiveAny && !peer.isSnubbing) able.push(peer);
    }
    if (able.length < 1) return;
    let left = MAX_RELIEVED;
    for (const piece of wants.urgent) {
      const partial = pieces.partials.get(piece);
      if (!partial || partial.isComplete) continue;
      for (let block = 0; block < partial.blockCount && left > 0; block++) {
        if (partial.done[block] !== 0 || partial.askers[block] === 0) continue;
        if (this.#relieve(partial, block, able)) left--;
      }
      if (left === 0) return;
    }
  }

  #relieve(partial: PartialPiece, block: number, able: readonly Peer[]): boolean {
    const { now } = this.#state;
    const dueInMs = partial.dueAt[block]! - now;
    const isLate = dueInMs <= 0;
    if (partial.askers[block]! >= (isLate ? MAX_ASKERS : 2)) return false;
    let best: Peer | undefined;
    let bestEta = isLate ? Number.POSITIVE_INFINITY : (dueInMs - GAIN_MS) / 2;
    for (const peer of able) {
      const eta = peer.etaMs(now);
      if (eta >= bestEta || peer.connection === partial.askedOf[block] || !peer.mayGive(partial.index))
        continue;
      if (peer.requests.find(partial.index, block) >= 0) continue;
      best = peer;
      bestEta = eta;
    }
    return best !== undefined && this.#picker.ask(best, partial, block);
  }
}
