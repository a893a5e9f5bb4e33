import { emptyWindow, type LiveWindow } from "../../wire/live-window.ts";
import type { Children } from "./children.ts";
import { WIN_INTERVAL_MS, WIN_PIECES } from "./limits.ts";
import type { Parents } from "./parents.ts";
import type { LivePeer } from "./peer.ts";
import type { Spare } from "./spare.ts";
import type { LiveState } from "./state.ts";

/** Who gets nothing from us is told so many times more seldom what we have; and so many times where we
 * stand, once we stand somewhere: only children must know that at once, and paths change with each step anywhere above us. */
const SELDOM = 2;
const PATHS_SELDOM = 4;
/** Whoever has just come is told and tells at once: it seeks parents, and may be one. */
const YOUNG_MS = 5_000;

/** Tells all neighbours what we have, and where we stand in the trees. */
export class News {
  readonly #state: LiveState;
  readonly #children: Children;
  readonly #parents: Parents;
  readonly #spare: Spare;
  #at = 0;
  #rounds = 0;
  readonly #since: number;

  constructor(state: LiveState, children: Children, parents: Parents, spare: Spare) {
    this.#state = state;
    this.#children = children;
    this.#parents = parents;
    this.#spare = spare;
    this.#since = state.now;
    // Neighbours that start together do not speak together.
    this.#at = state.now + state.setup.random() * WIN_INTERVAL_MS;
  }

  /** To one peer, now: it has just come. */
  tell(peer: LivePeer): void {
    if (this.#state.window.head >= 0) this.#state.send(peer, { kind: "window", window: this.#window() });
    this.#tellPaths(peer, this.#all);
  }

  /** To all, when it is time. */
  round(): void {
    const { now, window, peers } = this.#state;
    if (window.head < 0) return;
    if (now < this.#at) {
      // Where they stand in a tree, its children must know at once.
      for (const peer of peers.values()) {
        if (peer.isGreeted && (peer.untoldPaths & peer.childOf) !== 0) this.#tellPaths(peer, peer.childOf);
      }
      return;
    }
    this.#at = now + WIN_INTERVAL_MS;
    const told = { kind: "window", window: this.#window() } as const;
    this.#rounds++;
    for (const peer of peers.values()) {
      if (!peer.isGreeted) continue;
      const isChild = peer.childOf !== 0;
      // Each of the others in a round of its own.
      const turn = this.#rounds + (peer.connection >> 1);
      if (!isChild && turn % SELDOM !== 0) continue;
      this.#state.send(peer, told, 0, 2 * WIN_INTERVAL_MS);
      const isYoung = now - Math.max(peer.openedAt, this.#since) < YOUNG_MS;
      this.#tellPaths(peer, isYoung || turn % PATHS_SELDOM === 0 ? this.#all : peer.childOf);
    }
  }

  /** Tells the paths of those of `stripes` that have changed since it was told. */
  #tellPaths(peer: LivePeer, stripes: number): void {
    const news = peer.untoldPaths & stripes;
    if (news === 0) return;
    peer.untoldPaths &= ~news;
    this.#state.send(peer, { kind: "paths", paths: this.#parents.pathsOf(news) });
  }

  get #all(): number {
    return this.#state.window.fullMask;
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
    window.queueMs = Math.min(0xffff, Math.round(this.#spare.waitMs(this.#state.chunkBytes, now)));
    window.lagMs = newest
      ? Math.max(0, Math.round(timeline.latenessMs(newest.header.value.timestampMs, now)))
      : 0;
    // Each piece is looked up once, not once for each of its chunks.
    const masks: number[] = [];
    for (let seq = base; seq <= head; seq++) masks.push(pieces.maskOf(seq));
    for (let stripe = 0; stripe < stripes; stripe++) {
      let run = 0;
      while (run < masks.length && (masks[run]! >>> stripe) & 1) run++;
      window.runs[stripe] = Math.min(run, 255);
      let beyond = 0;
      for (let i = 1; i <= 16 && run + i < masks.length; i++)
        beyond |= ((masks[run + i]! >>> stripe) & 1) << (i - 1);
      window.beyond[stripe] = beyond;
    }
    return window;
  }

  /** What is below is whole, but for what was skipped; a newcomer has nothing whole from before its start. */
  #oldestWhole(base: number): number {
    const { window, isSource, nextSeq, firstSeq } = this.#state;
    if (isSource) return Math.min(base, window.oldest);
    return nextSeq < 0 ? base : Math.min(base, Math.max(window.oldest, firstSeq));
  }
}
