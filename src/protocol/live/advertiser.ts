import { emptyWindow, type LiveWindow } from "../../wire/live/window.ts";
import type { Children } from "./children.ts";
import { WIN_INTERVAL_MS, WIN_PIECES } from "./limits.ts";
import type { Parents } from "./parents.ts";
import type { LivePeer } from "./peer.ts";
import type { SpareUpload } from "./spare-upload.ts";
import type { LiveState } from "./state.ts";

/** Peers that receive nothing from us get every second WIN, and changed paths with every fourth: paths
 * change with each change above us, and only children need them at once. */
const IDLE_WIN_FACTOR = 2;
const IDLE_PATHS_FACTOR = 4;
/** New peers get changed paths with every WIN: they look for parents, and may become parents. */
const NEW_PEER_MS = 5_000;

/** Sends WIN and PATHS to the neighbours. */
export class Advertiser {
  readonly #state: LiveState;
  readonly #children: Children;
  readonly #parents: Parents;
  readonly #spareUpload: SpareUpload;
  #at = 0;
  #rounds = 0;
  readonly #startedAt: number;

  constructor(state: LiveState, children: Children, parents: Parents, spareUpload: SpareUpload) {
    this.#state = state;
    this.#children = children;
    this.#parents = parents;
    this.#spareUpload = spareUpload;
    this.#startedAt = state.now;
    // A random start, so that neighbours that start together do not send together.
    this.#at = state.now + state.setup.random() * WIN_INTERVAL_MS;
  }

  /** Sends WIN and PATHS to a peer that has just connected. */
  sendTo(peer: LivePeer): void {
    if (this.#state.window.head >= 0) this.#state.send(peer, { kind: "window", window: this.#window() });
    this.#sendPaths(peer, this.#all);
  }

  /** Sends WIN and PATHS to all peers when they are due. */
  round(): void {
    const { now, window, peers, isFetchingHistory } = this.#state;
    if (window.head < 0) return;
    // Peers stop sending if no WIN confirms what they have sent (`UNCONFIRMED_MS`).
    if (now < this.#at && !isFetchingHistory) {
      // Children receive changed paths of their stripes at once.
      for (const peer of peers.values()) {
        if (peer.hasSentHello && (peer.unsentPaths & peer.childOf) !== 0) this.#sendPaths(peer, peer.childOf);
      }
      return;
    }
    this.#at = now + WIN_INTERVAL_MS;
    const message = { kind: "window", window: this.#window() } as const;
    this.#rounds++;
    for (const peer of peers.values()) {
      if (!peer.hasSentHello) continue;
      const isChild = peer.childOf !== 0;
      // The idle peers take turns.
      const turn = this.#rounds + (peer.connection >> 1);
      if (!isChild && !isFetchingHistory && turn % IDLE_WIN_FACTOR !== 0) continue;
      this.#state.send(peer, message, 0, 2 * WIN_INTERVAL_MS);
      const isYoung = now - Math.max(peer.openedAt, this.#startedAt) < NEW_PEER_MS;
      this.#sendPaths(peer, isYoung || turn % IDLE_PATHS_FACTOR === 0 ? this.#all : peer.childOf);
    }
  }

  /** Sends the paths in `stripes` that have changed since they were last sent. */
  #sendPaths(peer: LivePeer, stripes: number): void {
    const changed = peer.unsentPaths & stripes;
    if (changed === 0) return;
    peer.unsentPaths &= ~changed;
    this.#state.send(peer, { kind: "paths", paths: this.#parents.pathsOf(changed) });
  }

  get #all(): number {
    return this.#state.window.fullMask;
  }

  #window(): LiveWindow {
    const { window: pieces, epoch, timeline, now, isFetchingHistory, startSeq } = this.#state;
    const { stripes } = pieces;
    const window = emptyWindow(stripes);
    const { head, oldest } = pieces;
    // Pieces before our position were played or given up; including them would hide which newer ones we hold.
    const position = isFetchingHistory ? startSeq : this.#state.nextSeq;
    let base = Math.max(oldest, head - WIN_PIECES + 1, Math.min(position, head));
    while (base <= head && pieces.isWhole(base)) base++;
    const newest = pieces.piece(base - 1) ?? pieces.piece(head);
    const freeSlots = Math.max(0, this.#children.slots - this.#children.used);
    window.epoch = epoch;
    window.baseSeq = base;
    window.oldestSeq = this.#oldestWhole(base);
    window.isOpen = freeSlots > 0;
    window.freeSlots = freeSlots;
    window.queueMs = Math.min(0xffff, Math.round(this.#spareUpload.waitMs(this.#state.chunkBytes, now)));
    window.lagMs = newest
      ? Math.max(0, Math.round(timeline.latenessMs(newest.header.value.timestampMs, now)))
      : 0;
    // Look up each piece once, not once per chunk.
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

  /** Everything from here to `base` is held, except skipped pieces; a newcomer holds nothing from before
   * its start. */
  #oldestWhole(base: number): number {
    const { window, isSource, nextSeq, firstSeq, isFetchingHistory } = this.#state;
    if (isSource) return Math.min(base, window.oldest);
    return nextSeq < 0 || isFetchingHistory ? base : Math.min(base, Math.max(window.oldest, firstSeq));
  }
}
