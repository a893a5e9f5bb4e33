import { comparePieces, isTimely } from "../../wire/live-trust.ts";
import type { Headers } from "./headers.ts";
import { HELLO_GATHER_MS, HELLO_GATHER_PEERS } from "./limits.ts";
import type { SignedHeader } from "./messages.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** Finds the head of the stream: the newest that anybody can prove, not what the first one says. */
export class Joining {
  readonly #state: LiveState;
  readonly #headers: Headers;
  #firstAt: number | undefined;

  constructor(state: LiveState, headers: Headers) {
    this.#state = state;
    this.#headers = headers;
  }

  /** A peer said hello. False where it is gone for it. */
  greeted(peer: LivePeer, header: SignedHeader | undefined): boolean {
    peer.isGreeted = true;
    if (!header) return true;
    if (this.#state.startSeq >= 0 || this.#state.isSource) {
      const { epoch, window } = this.#state;
      // What it tells is a claim about now; older than ours is no news, and no fault.
      if (header.value.epoch === epoch && header.value.seq <= window.head) return true;
      return header.value.epoch < epoch || this.#headers.take(header, peer);
    }
    return this.told(peer, header);
  }

  /** A peer tells a head while we have none: with its hello, or as soon as it has one itself. False where it is gone for it. */
  told(peer: LivePeer, header: SignedHeader): boolean {
    if (!this.#headers.isGenuine(header, peer)) return this.#state.peers.has(peer.connection);
    if (this.#headers.isOfFuture(header) || (peer.head && !isAfter(header, peer.head))) return true;
    peer.head = header;
    this.#firstAt ??= this.#state.now;
    return true;
  }

  /** Nothing can be played yet, since nobody has told where the stream is. */
  get isWaiting(): boolean {
    return this.#state.startSeq < 0 && !this.#state.isSource;
  }

  /** When the head is to be chosen at the latest. */
  get dueAt(): number | undefined {
    return this.#state.startSeq < 0 && this.#firstAt !== undefined
      ? this.#firstAt + HELLO_GATHER_MS
      : undefined;
  }

  /** Chooses the head once enough have said theirs. True where it did. */
  round(): boolean {
    const { dueAt } = this;
    if (dueAt === undefined) return false;
    const told = [...this.#state.peers.values()].filter(({ head }) => head !== undefined);
    if (told.length === 0) {
      this.#firstAt = undefined;
      return false;
    }
    if (this.#state.now < dueAt && !this.#isEnough(told)) return false;
    this.#start(told);
    return true;
  }

  /** Nobody is left to wait for, or one has spoken who is always near the head. */
  #isEnough(told: readonly LivePeer[]): boolean {
    const { opening, peers } = this.#state;
    if (told.length >= HELLO_GATHER_PEERS || told.some(({ isPillar }) => isPillar)) return true;
    return opening === 0 && [...peers.values()].every(({ isGreeted }) => isGreeted);
  }

  /** Starts again at what the peers tell now. */
  again(): void {
    this.#state.nextSeq = -1;
    const { window, setup } = this.#state;
    this.#state.startSeq = Math.max(0, window.head + 1 - this.#state.piecesIn(setup.rules.backfillMs));
  }

  #start(told: readonly LivePeer[]): void {
    const newestMs = Math.max(...told.map(({ head }) => head!.value.timestampMs));
    const unixMs = this.#state.setup.unixMs(this.#state.now);
    const timely = told.filter(({ head }) => isTimely(head!.value, unixMs, newestMs));
    const best = timely.reduce((a, b) => (isAfter(b.head!, a.head!) ? b : a)).head!;
    this.#state.epoch = best.value.epoch;
    this.#headers.add(best, undefined);
    this.#state.startSeq = Math.max(
      0,
      best.value.seq + 1 - this.#state.piecesIn(this.#state.setup.rules.backfillMs),
    );
  }
}

function isAfter(a: SignedHeader, b: SignedHeader): boolean {
  return comparePieces(a.value, b.value) > 0;
}
