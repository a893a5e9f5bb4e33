import { emptyWindow, type LiveWindow } from "../../wire/live-window.ts";
import type { Children } from "./children.ts";
import { WIN_INTERVAL_MS, WIN_PIECES } from "./limits.ts";
import type { Parents } from "./parents.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** Who is neither parent nor child is told so many times more seldom. */
const SELDOM = 2;

/** Tells all neighbours what we have, and where we stand in the trees. */
export class News {
  readonly #state: LiveState;
  readonly #children: Children;
  readonly #parents: Parents;
  #at = 0;
  #rounds = 0;

  constructor(state: LiveState, children: Children, parents: Parents) {
    this.#state = state;
    this.#children = children;
    this.#parents = parents;
    // Neighbours that start together do not speak together.
    this.#at = state.now + state.setup.random() * WIN_INTERVAL_MS;
  }

  /** To one peer, now: it has just come. */
  tell(peer: LivePeer): void {
    if (this.#state.window.head >= 0) this.#state.send(peer, { kind: "window", window: this.#window() });
    this.#tellPaths(peer);
  }

  /** To all, when it is time. */
  round(): void {
    const { now, window, peers } = this.#state;
    if (window.head < 0) return;
    if (now < this.#at) {
      // Where they stand in a tree, children must know at once.
      for (const peer of peers.values()) if (peer.isGreeted && peer.childOf !== 0) this.#tellPaths(peer);
      return;
    }
    this.#at = now + WIN_INTERVAL_MS;
    const told = { kind: "window", window: this.#window() } as const;
    this.#rounds++;
    for (const peer of peers.values()) {
      if (!peer.isGreeted) continue;
      // Those who give us nothing and get nothing hear of us less often; each in a round of its own.
      const isRelated = (peer.parentOf | peer.childOf) !== 0;
      if (!isRelated && (this.#rounds + (peer.connection >> 1)) % SELDOM !== 0) continue;
      this.#state.send(peer, told, 0, 2 * WIN_INTERVAL_MS);
      this.#tellPaths(peer);
    }
  }

  #tellPaths(peer: LivePeer): void {
    const version = this.#parents.pathsVersion;
    if (peer.toldPathsVersion === version) return;
    const paths = this.#parents.pathsSince(peer.toldPathsVersion);
    peer.toldPathsVersion = version;
    this.#state.send(peer, { kind: "paths", paths });
  }

  #window(): LiveWindow {
    const { window: pieces, epoch, timeline, now } = this.#state;
    const { stripes } = pieces;
    const window = emptyWindow(stripes);
    const { head, oldest } = pieces;
    // What is before our own position is played or given up: it would only hide what we have of newer pieces.
    let base = Math.max(oldest, head - WIN_PIECES + 1, Math.min(this.#state.nextSeq, head));
    while (base <= head && pieces.isWhole(base)) base++;
    const newest = pieces.piece(base - 1) ?? pieces.piece(head);
    const freeSlots = Math.max(0, this.#children.slots - this.#children.used);
    window.epoch = epoch;
    window.baseSeq = base;
    window.oldestSeq = this.#oldestWhole(base);
    window.isOpen = freeSlots > 0;
    window.freeSlots = freeSlots;
    window.lagMs = newest
      ? Math.max(0, Math.round(timeline.latenessMs(newest.header.value.timestampMs, now)))
      : 0;
    for (let stripe = 0; stripe < stripes; stripe++) {
      let run = 0;
      while (base + run <= head && pieces.has(base + run, stripe)) run++;
      window.runs[stripe] = Math.min(run, 255);
      let beyond = 0;
      for (let i = 1; i <= 16; i++) if (pieces.has(base + run + i, stripe)) beyond |= 1 << (i - 1);
      window.beyond[stripe] = beyond;
    }
    return window;
  }

  /** What is below is whole, but for what was skipped; a newcomer has nothing from before its start. */
  #oldestWhole(base: number): number {
    const { window, isSource, startSeq } = this.#state;
    return Math.min(base, isSource ? window.oldest : Math.max(window.oldest, startSeq));
  }
}
