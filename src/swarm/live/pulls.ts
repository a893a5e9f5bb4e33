import type { ChunkName, LackingMessage } from "../../wire/live-request.ts";
import type { Chunks } from "./chunks.ts";
import { PRIORITY } from "./contract.ts";
import { MAX_NAMED_CHUNKS, MAX_PULLS, MAX_PULLS_PER_PEER, PULL_AVOID_MS, PULL_TIMEOUT_MS } from "./limits.ts";
import type { Parents } from "./parents.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** A chunk that was asked for. A second copy may be on its way when time is short. */
interface Pull extends ChunkName {
  readonly askedOf: { readonly peer: LivePeer; readonly until: number }[];
  /** Who failed to send it. */
  readonly tried: Set<LivePeer>;
  /** Who may still send it, though others were asked since. */
  readonly slow: Set<LivePeer>;
}

/** Asks others for what is late. */
export class Pulls {
  readonly #state: LiveState;
  readonly #chunks: Chunks;
  readonly #parents: Parents;
  readonly #pulls = new Map<number, Pull>();

  constructor(state: LiveState, chunks: Chunks, parents: Parents) {
    this.#state = state;
    this.#chunks = chunks;
    this.#parents = parents;
  }

  /** How many are on their way. */
  get size(): number {
    return this.#pulls.size;
  }

  /** Whether a chunk was asked for and is on its way. */
  isAsked(seq: number, stripe: number): boolean {
    return this.#pulls.has(keyOf(seq, stripe));
  }

  /** A chunk came: whether it was asked for. Others who were asked as well are told to let it be. */
  came(seq: number, stripe: number, from: LivePeer | undefined): boolean {
    const pull = this.#pulls.get(keyOf(seq, stripe));
    if (!pull) return false;
    const wasAsked =
      from !== undefined && (pull.askedOf.some(({ peer }) => peer === from) || pull.tried.has(from));
    if (wasAsked) from.answeredAt = this.#state.now;
    this.#giveUp(pull);
    // The parent may have it in its queue, or be pulling it to hand it down.
    const parent = this.#parents.parentOf(stripe);
    if (parent && !parent.has(seq, stripe)) pull.slow.add(parent);
    for (const peer of pull.slow) if (peer !== from) this.#cancel(peer, seq, stripe);
    return wasAsked;
  }

  /** It is asked for no more. Those in `slow` may still send it. */
  #giveUp(pull: Pull): void {
    for (const { peer } of pull.askedOf) {
      peer.pulls--;
      pull.slow.add(peer);
    }
    this.#pulls.delete(keyOf(pull.seq, pull.stripe));
  }

  #cancel(peer: LivePeer, seq: number, stripe: number): void {
    if (this.#state.peers.get(peer.connection) !== peer) return;
    this.#state.send(peer, { kind: "cancel", epoch: this.#state.epoch, chunks: [{ seq, stripe }] });
  }

  /** NAK: whether somebody else is to be asked now. */
  lacking(from: LivePeer, { chunks }: LackingMessage): boolean {
    let isFreed = false;
    for (const { seq, stripe, reason } of chunks) {
      const pull = this.#pulls.get(keyOf(seq, stripe));
      if (!pull?.askedOf.some(({ peer }) => peer === from)) continue;
      this.#release(pull, from);
      isFreed = true;
      // Who starts may have nobody else to ask.
      if (reason === "busy") from.pullAvoidUntil = this.#state.now + (this.#state.hasPlayed ? 1_000 : 250);
    }
    return isFreed;
  }

  left(peer: LivePeer): void {
    for (const pull of this.#pulls.values()) this.#release(pull, peer);
  }

  /** A new epoch. */
  reset(): void {
    for (const pull of this.#pulls.values()) for (const { peer } of pull.askedOf) peer.pulls--;
    this.#pulls.clear();
  }

  /** Looks for what is late, earliest deadline first, and asks for it. */
  round(): void {
    if (!this.#state.setup.rules.pulls || this.#state.isSource) return;
    this.#expire();
    const { window, setup, timeline, now, nextSeq } = this.#state;
    if (nextSeq < 0) return;
    const asks = new Map<LivePeer, { seq: number; stripe: number; withinMs: number }[]>();
    for (let seq = Math.max(nextSeq, window.oldest); seq <= window.head; seq++) {
      const piece = window.piece(seq);
      if (!piece || piece.mask === window.fullMask) continue;
      const remainingMs = setup.lagMs - timeline.latenessMs(piece.header.value.timestampMs, now);
      if (remainingMs <= 0) continue;
      for (let stripe = 0; stripe < window.stripes; stripe++) {
        if (((piece.mask >>> stripe) & 1) === 1) continue;
        // Backlog that a new parent is about to send is not late yet; what is from before it nobody will send.
        const isBefore = seq < this.#state.startSeq || seq < this.#parents.promisedFrom(stripe);
        const overdueMs = isBefore
          ? Number.POSITIVE_INFINITY
          : Math.min(this.#chunks.overdueMs(piece, stripe), this.#parents.settledMs(stripe));
        if (overdueMs > this.#parents.borneMs(seq, stripe)) this.#ask(seq, stripe, remainingMs, asks);
      }
    }
    for (const [peer, chunks] of asks) {
      const { epoch } = this.#state;
      this.#state.send(
        peer,
        { kind: "request", epoch, chunks: chunks.slice(0, MAX_NAMED_CHUNKS) },
        PRIORITY.control,
      );
    }
  }

  #ask(
    seq: number,
    stripe: number,
    remainingMs: number,
    asks: Map<LivePeer, { seq: number; stripe: number; withinMs: number }[]>,
  ): void {
    const key = keyOf(seq, stripe);
    let pull = this.#pulls.get(key);
    if (!pull) {
      if (this.#pulls.size >= MAX_PULLS) return;
      pull = { seq, stripe, askedOf: [], tried: new Set(), slow: new Set() };
    }
    const [first] = pull.askedOf;
    const isShort = first !== undefined && remainingMs < 2 * first.peer.rttMs + 100;
    if (pull.askedOf.length >= (isShort ? 2 : 1)) return;
    const holder = this.#holder(pull);
    if (!holder) {
      // All have failed: who had nothing at first may have it by now.
      pull.tried.clear();
      return;
    }
    const waitMs = Math.max(holder.rttMs + 100, Math.min(PULL_TIMEOUT_MS, remainingMs / 2));
    pull.askedOf.push({ peer: holder, until: this.#state.now + waitMs });
    holder.pulls++;
    this.#pulls.set(key, pull);
    const list = asks.get(holder) ?? [];
    list.push({ seq, stripe, withinMs: Math.round(remainingMs) });
    asks.set(holder, list);
  }

  /** The one with the shortest queue who says that it has the chunk. */
  #holder(pull: Pull): LivePeer | undefined {
    const { now, peers } = this.#state;
    let best: LivePeer | undefined;
    let bestMs = Number.POSITIVE_INFINITY;
    // A start is asked for in one go.
    const most = this.#state.hasPlayed ? MAX_PULLS_PER_PEER : MAX_NAMED_CHUNKS;
    for (const peer of peers.values()) {
      if (!peer.isGreeted || peer.pullAvoidUntil > now || peer.pulls >= most) continue;
      if (peer.isQuiet(now)) continue;
      if (peer.about.uploadBytesPerSecond === 0 || !peer.has(pull.seq, pull.stripe)) continue;
      if (pull.tried.has(peer) || pull.askedOf.some((ask) => ask.peer === peer)) continue;
      const chunkMs = (1_000 * this.#state.chunkBytes) / peer.about.uploadBytesPerSecond;
      // The source is the last to be asked: it feeds everybody.
      const sourceMs = peer.about.role === "source" ? 300 : 0;
      const ms = peer.rttMs + peer.pulls * chunkMs * 4 + (peer.window?.queueMs ?? 0) + sourceMs;
      if (ms >= bestMs) continue;
      bestMs = ms;
      best = peer;
    }
    return best;
  }

  /** Gives up who takes too long, and what is no longer wanted: who was asked for that need not send it. */
  #expire(): void {
    const { now, window, nextSeq } = this.#state;
    for (const pull of this.#pulls.values()) {
      for (const { peer, until } of [...pull.askedOf]) {
        if (until > now) continue;
        // Who sends one after another over a narrow uplink is slow; where it alone has the chunk, it is asked again.
        if (now - peer.answeredAt > PULL_TIMEOUT_MS || this.#isElsewhere(pull, peer))
          peer.pullAvoidUntil = now + (peer.usefulChunks > 0 ? PULL_AVOID_MS / 4 : PULL_AVOID_MS);
        this.#release(pull, peer);
        pull.slow.add(peer);
      }
      if (pull.seq >= nextSeq && pull.seq >= window.oldest) continue;
      this.#giveUp(pull);
      for (const peer of pull.slow) this.#cancel(peer, pull.seq, pull.stripe);
    }
  }

  /** Whether anybody else says that it has the chunk. */
  #isElsewhere({ seq, stripe }: Pull, peer: LivePeer): boolean {
    return [...this.#state.peers.values()].some((other) => other !== peer && other.has(seq, stripe));
  }

  #release(pull: Pull, peer: LivePeer): void {
    const at = pull.askedOf.findIndex((ask) => ask.peer === peer);
    if (at < 0) return;
    pull.askedOf.splice(at, 1);
    pull.tried.add(peer);
    peer.pulls--;
  }
}

function keyOf(seq: number, stripe: number): number {
  return seq * 16 + stripe;
}
