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
  readonly end: number;
  readonly since: number;
  readonly asked: LivePeer[];
  askAt: number;
}

/** Asks for headers: those of the start, those that chunks wait for, those between others, and the newest when none come. */
export class Asking {
  readonly #state: LiveState;
  readonly #chunks: Chunks;
  #newsAt = 0;
  #epochsAt = 0;
  /** As the source: whose turn it is, and the newest piece that each was asked for. */
  #turn = 0;
  readonly #askedSeq = new WeakMap<LivePeer, number>();
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
    for (const { seq, from } of this.#chunks.headersMissing()) this.#ask(from, seq, 1);
    this.#holes();
    this.#news();
    this.#epochs();
  }

  /** As the source: whether another is on air with its key. Who tells of a later epoch is asked to prove it; where there may be one of
   * our epoch, one peer after another which piece it has of a number that we have made. */
  ofAnother(): void {
    const { now, peers, epoch, window } = this.#state;
    if (window.head < 0 || now < this.#epochsAt) return;
    this.#epochsAt = now + NEWS_MS;
    const told = [...peers.values()].filter((peer) => peer.window && peer.headOf(0) >= 0);
    for (const peer of told) {
      if (peer.window!.epoch > epoch) this.#askOnce(peer, peer.headOf(0), peer.window!.epoch);
    }
    if (!this.#state.setup.mayHaveTwin) return;
    const same = told.filter((peer) => peer.window!.epoch === epoch);
    const one = same[this.#turn++ % Math.max(1, same.length)];
    if (one) this.#askOnce(one, Math.min(one.headOf(0), window.head), epoch);
  }

  /** Asks nobody for what he was asked for before: the same header again and again would be his fault. */
  #askOnce(peer: LivePeer, seq: number, epoch: number): void {
    if (seq <= (this.#askedSeq.get(peer) ?? -1)) return;
    this.#askedSeq.set(peer, seq);
    this.#ask(peer, seq, 1, epoch);
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

  /** What is to be thought of a piece without a header: those who may know are still being asked, it is to be had until it
   * is too late, or it is one of many that the source lost when it broke down. */
  verdict(seq: number): "ask" | "wait" | "lost" {
    const hole = this.#hole;
    if (!hole || seq < hole.firstSeq || seq >= hole.end) return "ask";
    const { now } = this.#state;
    const isAsked = now >= hole.askAt && (hole.asked.length >= HOLE_ASKS || !this.#holder(hole));
    if (now < hole.since + TOLD_MS) return "ask";
    const isLong = hole.end - hole.firstSeq > this.#state.piecesIn(LOST_MS);
    return isLong && isAsked ? "lost" : "wait";
  }

  /** Headers travel on three stripes; one that was lost on all of them, with all of its chunks, nobody else would miss. */
  #holes(): void {
    const { now } = this.#state;
    const found = this.#firstHole();
    if (!found) {
      this.#hole = undefined;
      return;
    }
    // Its beginning moves while we skip.
    const isSame = this.#hole?.end === found.end;
    const known = isSame ? this.#hole! : { since: now, asked: [], askAt: now + HEADER_WAIT_MS };
    const hole: Hole = { ...known, ...found };
    this.#hole = hole;
    if (now < hole.askAt || hole.asked.length >= HOLE_ASKS) return;
    const holder = this.#holder(hole);
    if (!holder) return;
    hole.asked.push(holder);
    hole.askAt = now + HOLE_MS + holder.rttMs;
    const firstSeq = Math.max(hole.firstSeq, holder.window?.oldestSeq ?? 0);
    this.#ask(holder, firstSeq, hole.end - firstSeq);
  }

  #firstHole(): Pick<Hole, "firstSeq" | "end"> | undefined {
    const { window, nextSeq } = this.#state;
    if (nextSeq < 0) return undefined;
    let firstSeq = Math.max(nextSeq, window.oldest);
    while (firstSeq < window.head && (window.piece(firstSeq) || window.isGap(firstSeq))) firstSeq++;
    const end = firstSeq < window.head ? window.above(firstSeq)?.seq : undefined;
    return end === undefined ? undefined : { firstSeq, end };
  }

  /** One who says that it has some of the hole, and was not asked. */
  #holder({ end, asked }: Hole): LivePeer | undefined {
    const { peers, epoch } = this.#state;
    for (const peer of peers.values()) {
      if (peer.window?.epoch !== epoch || asked.includes(peer)) continue;
      // What it has of the hole may be its end alone: a source that began again has nothing older.
      if (peer.window.oldestSeq < end && peer.headOf(0) >= end - 1) return peer;
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
      if (peer.window?.epoch !== epoch || peer.headOf(0) <= head) continue;
      newest = peer;
      head = peer.headOf(0);
    }
    if (newest) this.#ask(newest, Math.max(window.head + 1, head - 7), 8);
  }

  /** Neighbours that tell of a later epoch are asked to prove it: the source has begun anew, and our parents have not heard. */
  #epochs(): void {
    const { now, peers, epoch, window } = this.#state;
    if (window.head < 0 || now < this.#epochsAt) return;
    this.#epochsAt = now + NEWS_MS;
    for (const peer of peers.values()) {
      const newest = peer.headOf(0);
      if (!peer.window || peer.window.epoch <= epoch || newest < 0) continue;
      this.#ask(peer, Math.max(0, newest - 7), 8, peer.window.epoch);
    }
  }

  #ask(peer: LivePeer, firstSeq: number, count: number, epoch = this.#state.epoch): void {
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
