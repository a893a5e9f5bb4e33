import type { ChunkName, LackingMessage } from "../../wire/live/request.ts";
import type { Chunks } from "./chunks.ts";
import { PRIORITY } from "./contract.ts";
import {
  MAX_NAMED_CHUNKS,
  MAX_PULL_RETRY_MS,
  MAX_PULLS,
  MAX_PULLS_PER_PEER,
  MAX_UNTRUSTED_PULLS,
  PULL_AVOID_MS,
  PULL_RETRY_MS,
  PULL_TIMEOUT_MS,
} from "./limits.ts";
import type { Parents } from "./parents.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** Cost of a pull from the source, and from a peer that has not answered any. */
const SOURCE_MS = 300;
const UNTRUSTED_MS = 150;
/** Cost of a pull from the parent that should have pushed the chunk. */
const OWED_MS = 500;
/** Cost of each broken promise. */
const BROKEN_MS = 100;
/** A pull from a peer that has not answered any times out after this if another peer has the chunk. */
const UNTRUSTED_TIMEOUT_MS = 300;

/** A chunk that was requested, from two peers if little time is left. */
interface Pull extends ChunkName {
  readonly requests: { readonly peer: LivePeer; readonly until: number }[];
  /** Peers that failed to send it. */
  readonly failed: Set<LivePeer>;
  /** Peers that may still send it, although another peer was asked later. */
  readonly slow: Set<LivePeer>;
  /** Peers that have the chunk and named others instead (NAK, ask others). Each is asked once more if those fail. */
  readonly deferring: Set<LivePeer>;
  /** After all holders have failed: when they are asked again, and how often that has happened. */
  retryAt: number;
  rounds: number;
}

/** Requests late chunks from peers that have them (live protocol: Scheduling, pull). */
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

  /** The number of chunks being pulled. */
  get size(): number {
    return this.#pulls.size;
  }

  /** Whether a chunk is being pulled. */
  isRequested(seq: number, stripe: number): boolean {
    return this.#pulls.has(keyOf(seq, stripe));
  }

  /** A chunk arrived: ends its pull, and sends CANCEL to the other peers that may send it. Returns whether
   * `from` was asked for it. */
  chunkReceived(seq: number, stripe: number, from: LivePeer | undefined): boolean {
    const pull = this.#pulls.get(keyOf(seq, stripe));
    if (!pull) return false;
    const wasPulled =
      from !== undefined && (pull.requests.some(({ peer }) => peer === from) || pull.failed.has(from));
    if (wasPulled) from.answered(this.#state.now);
    this.#remove(pull);
    // The parent may have it in its queue, or be pulling it to forward it.
    const parent = this.#parents.parentOf(stripe);
    if (parent && !parent.has(seq, stripe)) pull.slow.add(parent);
    for (const peer of pull.slow) if (peer !== from) this.#cancel(peer, seq, stripe);
    return wasPulled;
  }

  /** Ends a pull. The peers in `slow` may still send the chunk. */
  #remove(pull: Pull): void {
    for (const { peer } of pull.requests) {
      peer.pulls--;
      pull.slow.add(peer);
    }
    this.#pulls.delete(keyOf(pull.seq, pull.stripe));
  }

  #cancel(peer: LivePeer, seq: number, stripe: number): void {
    if (this.#state.peers.get(peer.connection) !== peer) return;
    this.#state.send(peer, { kind: "cancel", epoch: this.#state.epoch, chunks: [{ seq, stripe }] });
  }

  /** Handles a NAK. Returns true if another peer can be asked now. */
  lacking(from: LivePeer, { epoch, chunks }: LackingMessage): boolean {
    if (epoch !== this.#state.epoch) return false;
    let isFreed = false;
    let isBusy = false;
    for (const { seq, stripe, reason } of chunks) {
      if (stripe >= this.#state.window.stripes) continue;
      const pull = this.#pulls.get(keyOf(seq, stripe));
      if (!pull?.requests.some(({ peer }) => peer === from)) continue;
      this.#release(pull, from);
      isFreed = true;
      if (reason === "ask-others") pull.deferring.add(from);
      if (reason === "busy" || reason === "too-late") isBusy = true;
    }
    if (isBusy) from.refusedPull(this.#state.now);
    return isFreed;
  }

  left(peer: LivePeer): void {
    for (const pull of this.#pulls.values()) this.#release(pull, peer);
  }

  /** Ends all pulls, for a new epoch. */
  reset(): void {
    for (const pull of this.#pulls.values()) for (const { peer } of pull.requests) peer.pulls--;
    this.#pulls.clear();
  }

  /** Ends and cancels all pulls, because no player needs the stream. */
  release(): void {
    for (const pull of this.#pulls.values()) this.#abandon(pull);
  }

  /** Finds late chunks, those with the earliest deadline first, and requests them. */
  round(): void {
    if (this.#state.isSource) return;
    this.#expire();
    const { window, nextSeq } = this.#state;
    if (nextSeq < 0) return;
    const requests = new Map<LivePeer, { seq: number; stripe: number; withinMs: number }[]>();
    for (const seq of this.#inOrder()) {
      const piece = window.piece(seq);
      if (!piece || piece.mask === window.fullMask) continue;
      const remainingMs = this.#state.remainingMs(piece);
      if (remainingMs <= 0) continue;
      for (let stripe = 0; stripe < window.stripes; stripe++) {
        if (((piece.mask >>> stripe) & 1) === 1) continue;
        // Backlog that a new parent has promised is not late yet; older chunks will not be pushed.
        const isBefore = seq < this.#state.startSeq || seq < this.#parents.promisedFrom(stripe);
        const overdueMs = isBefore
          ? Number.POSITIVE_INFINITY
          : Math.min(this.#chunks.overdueMs(piece, stripe), this.#parents.unchangedMs(stripe));
        if (overdueMs <= this.#parents.toleranceMs(seq, stripe)) continue;
        if (!isBefore && !this.isRequested(seq, stripe)) this.#parents.missed(seq, stripe);
        this.#ask(seq, stripe, remainingMs, requests);
      }
    }
    for (const [peer, chunks] of requests) {
      const { epoch } = this.#state;
      this.#state.send(
        peer,
        { kind: "request", epoch, chunks: chunks.slice(0, MAX_NAMED_CHUNKS) },
        PRIORITY.control,
      );
    }
  }

  /** The pieces that are to be played, in the order of requests: the newest part of the history is the one that is of use alone. */
  *#inOrder(): Generator<number> {
    const { window, nextSeq, startSeq, historyUntil, now } = this.#state;
    const oldest = Math.max(nextSeq, window.oldest);
    const first = now < historyUntil ? Math.max(oldest, startSeq) : oldest;
    for (let seq = first; seq <= window.head; seq++) yield seq;
    for (let seq = first - 1; seq >= oldest; seq--) yield seq;
  }

  #ask(
    seq: number,
    stripe: number,
    remainingMs: number,
    requests: Map<LivePeer, { seq: number; stripe: number; withinMs: number }[]>,
  ): void {
    const key = keyOf(seq, stripe);
    let pull = this.#pulls.get(key);
    if (!pull) {
      if (this.#pulls.size >= MAX_PULLS) return;
      const peers = { requests: [], failed: new Set<LivePeer>(), slow: new Set<LivePeer>() };
      pull = { seq, stripe, ...peers, deferring: new Set(), retryAt: 0, rounds: 0 };
    }
    if (this.#state.now < pull.retryAt) return;
    const [first] = pull.requests;
    const isShort = first !== undefined && remainingMs < 2 * first.peer.rttMs + 100;
    if (pull.requests.length >= (isShort ? 2 : 1)) return;
    const holder = this.#holder(pull) ?? this.#deferring(pull);
    if (!holder) {
      if (pull.failed.size === 0) return;
      // All holders have failed; one of them may have the chunk by now. The wait grows, so that a holder that refuses
      // at once is not asked at the speed of the network.
      pull.failed.clear();
      pull.retryAt = this.#state.now + Math.min(MAX_PULL_RETRY_MS, PULL_RETRY_MS * 2 ** pull.rounds++);
      return;
    }
    const isShortTimeout = !holder.isTrusted && this.#hasOtherHolder(pull, holder);
    const timeoutMs = isShortTimeout ? UNTRUSTED_TIMEOUT_MS : PULL_TIMEOUT_MS;
    const waitMs = Math.max(holder.rttMs + 100, Math.min(timeoutMs, remainingMs / 2));
    pull.requests.push({ peer: holder, until: this.#state.now + waitMs });
    holder.pulls++;
    holder.markAsked(seq, stripe);
    this.#pulls.set(key, pull);
    const list = requests.get(holder) ?? [];
    list.push({ seq, stripe, withinMs: Math.round(remainingMs) });
    requests.set(holder, list);
  }

  /** Returns the peer that will probably send the chunk first. A queue is a claim: after a failed request, and for most
   * of the pulls, peers that have answered before come first; if there is none, the source after a failure. */
  #holder(pull: Pull): LivePeer | undefined {
    const { peers } = this.#state;
    let best: LivePeer | undefined;
    let bestMs = Number.POSITIVE_INFINITY;
    let trusted: LivePeer | undefined;
    let trustedMs = Number.POSITIVE_INFINITY;
    let source: LivePeer | undefined;
    const isDoubtful = this.#parents.isDoubtful(pull.stripe);
    const parent = this.#parents.parentOf(pull.stripe);
    // A parent that may be hostile, or has broken a promise, is the last choice for what it should have pushed.
    const isSuspect =
      isDoubtful ||
      (this.#state.hasPlayed &&
        this.#state.lineDelayMs === 0 &&
        parent !== undefined &&
        parent.brokenPromises >= 1);
    const isOwed =
      isSuspect && pull.seq >= Math.max(this.#state.startSeq, this.#parents.promisedFrom(pull.stripe));
    for (const peer of peers.values()) {
      if (!this.#mayAsk(peer, pull)) continue;
      const owedMs = isOwed && peer === parent ? OWED_MS : 0;
      const ms = this.#answerMs(peer, isDoubtful) + owedMs;
      if (peer.about.role === "source") source = peer;
      if (peer.isTrusted && ms < trustedMs) {
        trustedMs = ms;
        trusted = peer;
      }
      if (ms >= bestMs) continue;
      bestMs = ms;
      best = peer;
    }
    if (trusted && trustedMs < bestMs + UNTRUSTED_MS) return trusted;
    // A peer that has sent chunks before is asked instead, and the source a second time at once.
    if (isSuspect) {
      const first = (trusted?.brokenPromises ?? 1) < 1 ? trusted : (this.#deferring(pull) ?? trusted);
      if (first) return first;
    }
    const hasFailed = pull.failed.size > (pull.deferring.size > 0 ? 1 : 0);
    if (!hasFailed && (best?.pulls ?? 0) < MAX_UNTRUSTED_PULLS) return best;
    if (!hasFailed) return trusted ?? best;
    return trusted ?? this.#deferring(pull) ?? source ?? best;
  }

  /** Returns a peer that has named others, which is asked a second time. */
  #deferring({ deferring, failed }: Pull): LivePeer | undefined {
    for (const peer of deferring) {
      if (!failed.has(peer) || peer.pullAvoidUntil > this.#state.now || peer.isSilent(this.#state.now))
        continue;
      deferring.delete(peer);
      return peer;
    }
    return undefined;
  }

  #mayAsk(peer: LivePeer, { seq, stripe, failed, requests }: Pull): boolean {
    const { now, hasPlayed } = this.#state;
    // Many chunks are requested at once at the start, and from a trusted peer while stripes have no parent.
    const isUrgent = !hasPlayed || (peer.isTrusted && this.#parents.orphans > 0);
    const most = isUrgent ? MAX_NAMED_CHUNKS : MAX_PULLS_PER_PEER;
    if (!peer.hasSentHello || peer.pullAvoidUntil > now || peer.pulls >= most || peer.isSilent(now))
      return false;
    if (peer.about.uploadBytesPerSecond === 0 || !this.#holds(peer, seq, stripe)) return false;
    return !failed.has(peer) && !requests.some((request) => request.peer === peer);
  }

  /** Whether a peer has the chunk of a piece whose header is known. The source has made it; the WIN of other peers tells. */
  #holds(peer: LivePeer, seq: number, stripe: number): boolean {
    const { about, window } = peer;
    if (about.role !== "source" || window?.epoch !== this.#state.epoch) return peer.has(seq, stripe);
    return seq >= window.oldestSeq;
  }

  #answerMs({ about, rttMs, pulls, window, brokenPromises }: LivePeer, isDoubtful: boolean): number {
    const chunkMs = (1_000 * this.#state.chunkBytes) / about.uploadBytesPerSecond;
    // The source is the last choice, because it feeds all peers.
    const sourceMs = about.role === "source" && !isDoubtful ? SOURCE_MS : 0;
    return rttMs + pulls * chunkMs * 4 + (window?.queueMs ?? 0) + sourceMs + brokenPromises * BROKEN_MS;
  }

  /** Ends requests that timed out and pulls that are no longer needed, and cancels the latter. */
  #expire(): void {
    const { now, window, nextSeq, lineDelayMs } = this.#state;
    for (const pull of this.#pulls.values()) {
      for (const { peer, until } of [...pull.requests]) {
        if (until + lineDelayMs > now) continue;
        peer.brokePromise();
        // A peer with a narrow uplink may be slow but working; if it is the only holder, it is asked again.
        if (now - peer.answeredAt > PULL_TIMEOUT_MS || this.#hasOtherHolder(pull, peer))
          peer.pullAvoidUntil = now + (peer.usefulChunks > 0 ? PULL_AVOID_MS / 4 : PULL_AVOID_MS);
        this.#release(pull, peer);
        pull.slow.add(peer);
      }
      if (pull.seq >= nextSeq && pull.seq >= window.oldest) continue;
      this.#abandon(pull);
    }
  }

  #abandon(pull: Pull): void {
    this.#remove(pull);
    for (const peer of pull.slow) this.#cancel(peer, pull.seq, pull.stripe);
  }

  /** Whether another peer has the chunk. */
  #hasOtherHolder({ seq, stripe }: Pull, peer: LivePeer): boolean {
    return [...this.#state.peers.values()].some((other) => other !== peer && other.has(seq, stripe));
  }

  #release(pull: Pull, peer: LivePeer): void {
    const at = pull.requests.findIndex((request) => request.peer === peer);
    if (at < 0) return;
    pull.requests.splice(at, 1);
    pull.failed.add(peer);
    peer.pulls--;
  }
}

function keyOf(seq: number, stripe: number): number {
  return seq * 16 + stripe;
}
