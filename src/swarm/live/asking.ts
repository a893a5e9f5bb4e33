import type { Chunks } from "./chunks.ts";
import { HEADER_WAIT_MS, MAX_HEADERS_ANSWERED, WIN_INTERVAL_MS } from "./limits.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** Without a new header for so long, others are asked. */
const NEWS_MS = 500;
/** Another is asked for headers that are missing between known ones after so long, and so many in all. */
const HOLE_MS = 150;
const HOLE_ASKS = 4;
/** A hole that is so long, and that nobody could fill, is what a source lost when it broke down: not waited for. */
const LOST_MS = 1_000;
/** By then all neighbours have told what they have. */
const TOLD_MS = 2 * WIN_INTERVAL_MS;

/** Numbers without a header, between pieces that are known. */
interface Hole {
  readonly firstSeq: number;
  readonly count: number;
  readonly since: number;
  readonly asked: LivePeer[];
  askAt: number;
}

/** Asks for headers: those of the start, those that chunks wait for, those between others, and the newest when none come. */
export class Asking {
  readonly #state: LiveState;
  readonly #chunks: Chunks;
  #newsAt = 0;
  #hole: Hole | undefined;

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
    for (const { seq, from } of this.#chunks.headersMissing()) {
      if (this.#state.peers.get(from.connection) === from) this.#ask(from, seq, 1);
    }
    this.#holes();
    this.#news();
  }

  /** Where players can begin is in the headers: they are asked of one who knows them, besides what SUB brings. */
  recent(firstSeq: number): void {
    const { window, peers } = this.#state;
    for (const peer of peers.values()) {
      if (peer.head?.value.seq !== window.head) continue;
      this.#ask(peer, firstSeq, window.head - firstSeq);
      return;
    }
  }

  /** Whether the piece belongs to many of which nobody has even a header: the source broke down before it sent them. */
  isLost(seq: number): boolean {
    const hole = this.#hole;
    if (!hole || seq < hole.firstSeq || seq >= hole.firstSeq + hole.count) return false;
    const { now } = this.#state;
    // All who could know have been asked, and had the time to answer.
    if (hole.count <= this.#state.piecesIn(LOST_MS) || now < Math.max(hole.askAt, hole.since + TOLD_MS))
      return false;
    return hole.asked.length >= HOLE_ASKS || !this.#holder(hole);
  }

  /** Headers travel on three stripes; one that was lost on all of them, with all of its chunks, nobody else would miss. */
  #holes(): void {
    const { now } = this.#state;
    const found = this.#firstHole();
    if (!found) {
      this.#hole = undefined;
      return;
    }
    if (this.#hole?.firstSeq !== found.firstSeq || this.#hole.count !== found.count) {
      this.#hole = { ...found, since: now, asked: [], askAt: now + HEADER_WAIT_MS };
    }
    const hole = this.#hole;
    if (now < hole.askAt || hole.asked.length >= HOLE_ASKS) return;
    const holder = this.#holder(hole);
    if (!holder) return;
    hole.asked.push(holder);
    hole.askAt = now + HOLE_MS + holder.rttMs;
    this.#ask(holder, hole.firstSeq, hole.count);
  }

  #firstHole(): Pick<Hole, "firstSeq" | "count"> | undefined {
    const { window, nextSeq } = this.#state;
    if (nextSeq < 0) return undefined;
    let firstSeq = Math.max(nextSeq, window.oldest);
    while (firstSeq < window.head && (window.piece(firstSeq) || window.isGap(firstSeq))) firstSeq++;
    const end = firstSeq < window.head ? window.above(firstSeq)?.seq : undefined;
    return end === undefined ? undefined : { firstSeq, count: end - firstSeq };
  }

  /** One who says that it has all before the end of the hole, and was not asked. */
  #holder({ firstSeq, count, asked }: Hole): LivePeer | undefined {
    const { peers, epoch } = this.#state;
    for (const peer of peers.values()) {
      if (peer.window?.epoch !== epoch || asked.includes(peer)) continue;
      if (peer.window.oldestSeq <= firstSeq && peer.headOf(0) >= firstSeq + count - 1) return peer;
    }
    return undefined;
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
    if (newest) this.#ask(newest, Math.max(window.head + 1, head - 7), 8);
  }

  #ask(peer: LivePeer, firstSeq: number, count: number): void {
    const { epoch } = this.#state;
    if (count <= 0) return;
    this.#state.send(peer, {
      kind: "headerRequest",
      epoch,
      firstSeq,
      count: Math.min(count, MAX_HEADERS_ANSWERED),
      step: 1,
      onlyRandomAccess: false,
    });
  }
}
