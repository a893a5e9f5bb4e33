import type { Chunks } from "./chunks.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** Without a new header for so long, others are asked. */
const NEWS_MS = 500;

/** Asks for headers: those of the start, those that chunks wait for, and the newest when none come. */
export class Asking {
  readonly #state: LiveState;
  readonly #chunks: Chunks;
  #newsAt = 0;

  constructor(state: LiveState, chunks: Chunks) {
    this.#state = state;
    this.#chunks = chunks;
  }

  /** A new header has come. */
  heard(): void {
    this.#newsAt = this.#state.now;
  }

  /** Asks for what is missing. */
  round(): void {
    this.#missing();
    this.#news();
  }

  /** Where players can begin is in the headers: they are asked of one who knows them, besides what SUB brings. */
  recent(): void {
    const { epoch, startSeq: firstSeq, window, peers } = this.#state;
    const count = window.head - firstSeq;
    for (const peer of peers.values()) {
      if (peer.head?.value.seq !== window.head) continue;
      this.#state.send(peer, {
        kind: "headerRequest",
        epoch,
        firstSeq,
        count,
        step: 1,
        onlyRandomAccess: false,
      });
      return;
    }
  }

  /** No header has come for a while and others have newer pieces: the way in is asked for, so that pulls can begin. */
  #news(): void {
    const { now, window, peers, epoch } = this.#state;
    if (window.head < 0 || now - this.#newsAt < NEWS_MS) return;
    this.#newsAt = now;
    let newest: LivePeer | undefined;
    let head = window.head + this.#state.piecesIn(NEWS_MS);
    for (const peer of peers.values()) {
      if (!peer.window || peer.window.epoch !== epoch || peer.headOf(0) <= head) continue;
      newest = peer;
      head = peer.headOf(0);
    }
    if (!newest) return;
    this.#state.send(newest, {
      kind: "headerRequest",
      epoch,
      firstSeq: Math.max(window.head + 1, head - 7),
      count: 8,
      step: 1,
      onlyRandomAccess: false,
    });
  }

  #missing(): void {
    for (const { seq, from } of this.#chunks.headersMissing()) {
      if (this.#state.peers.get(from.connection) !== from) continue;
      const { epoch } = this.#state;
      this.#state.send(from, {
        kind: "headerRequest",
        epoch,
        firstSeq: seq,
        count: 1,
        step: 1,
        onlyRandomAccess: false,
      });
    }
  }
}
