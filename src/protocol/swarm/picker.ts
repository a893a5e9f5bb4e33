import { randomBelow } from "../../base/random.ts";
import type { Instant } from "../../base/time.ts";
import type { Downloads } from "./downloads.ts";
import { BLOCK_BYTES } from "./limits.ts";
import type { PartialPiece } from "./partial-piece.ts";
import type { Peer } from "./peer.ts";
import type { Pieces } from "./pieces.ts";
import type { SwarmState } from "./state.ts";

/** Candidates compared to start a piece: rarity beyond this many matters little to a stream. */
const MAX_CANDIDATES_SEEN = 256;
/** Pieces skipped (held, started, or missing at the peer) in one search. */
const MAX_SCAN = 4096;
/** A peer whose answer would arrive this much later than the fastest one's gets no block of the first urgent piece. */
const SLACK_MS = 100;
/** Weight of distance against randomness among pieces that only seeds have: measured, 1 and 4 both stall more. */
const NEAR_WEIGHT = 2;
/** How long after the handshake a choking peer is asked for urgent pieces only (BEP 6, allowed fast). */
const CHOKED_WAIT_MS = 5_000;
/** With more peers than this per seed, the seeds alone cannot supply all of them. */
const SCARCE_PEERS = 4;

/** Speed of all peers together, computed once per instant. */
interface SpeedSummary {
  readonly at: Instant;
  /** An answer within this time is about as fast as that of the fastest peer. */
  readonly soonMs: number;
  /** Bytes a millisecond of all peers together; 0 while unknown. */
  readonly bytesPerMs: number;
  /** Peers that would answer within `soonMs`. */
  readonly fastPeers: number;
}

/**
 * Decides which blocks to request from which peer: urgent pieces first, in reading order, from peers that deliver in time;
 * then started pieces; then new pieces that readers want, rarest first, with readers taking turns.
 */
export class Picker {
  readonly #state: SwarmState;
  readonly #downloads: Downloads;
  /** The reader that may start the next piece. */
  #turn = 0;
  #lastSummary: SpeedSummary | undefined;
  /** Gives each engine its own order of equally rare pieces. */
  readonly #salt: number;

  constructor(state: SwarmState, downloads: Downloads) {
    this.#state = state;
    this.#salt = randomBelow(state.setup.random, 0x7fff_ffff);
    this.#downloads = downloads;
  }

  /** Requests blocks from every peer with a free queue, if there may be anything new to request. */
  refillAll(): void {
    if (!this.#state.pieces || this.#state.wants.readers === 0) return;
    for (const peer of this.#byEta()) this.refill(peer);
  }

  /** Requests as many blocks from one peer as its queue has room for. */
  refill(peer: Peer): void {
    const { pieces, demandVersion } = this.#state;
    if (!pieces || !peer.canRequestAny || peer.idleVersion === demandVersion) return;
    const room = Math.min(peer.requests.room(), peer.requestLimit - peer.requests.pending);
    if (room <= 0 || this.#state.wants.readers === 0) return;
    const left = this.#fill(pieces, peer, room);
    const isFinal =
      !this.#isSoonUnchoked(peer) && this.#state.downloadBudget(peer).waitMs(this.#state.now) === 0;
    if (left > 0 && isFinal) peer.idleVersion = demandVersion;
  }

  #isSoonUnchoked(peer: Peer): boolean {
    return peer.isChoking && this.#state.now - peer.stageSince < CHOKED_WAIT_MS;
  }

  #speedSummary(): SpeedSummary {
    const { now, peers } = this.#state;
    if (this.#lastSummary?.at === now) return this.#lastSummary;
    let leastEtaMs = Number.POSITIVE_INFINITY;
    let bytesPerMs = 0;
    for (const peer of peers.values()) {
      if (!peer.canRequestAny || peer.isChoking) continue;
      leastEtaMs = Math.min(leastEtaMs, peer.etaMs(now));
      bytesPerMs += peer.requests.bytesPerMs;
    }
    const soonMs = Math.max(2 * leastEtaMs, leastEtaMs + SLACK_MS);
    let fastPeers = 0;
    for (const peer of peers.values())
      if (peer.canRequestAny && !peer.isChoking && peer.etaMs(now) <= soonMs) fastPeers++;
    this.#lastSummary = { at: now, soonMs, bytesPerMs, fastPeers };
    return this.#lastSummary;
  }

  /** Requests `block` from `peer`; returns false if the queue is full or the download limit is reached. */
  request(peer: Peer, partial: PartialPiece, block: number): boolean {
    const { now } = this.#state;
    const length = partial.blockLength(block);
    if (peer.requests.isFull || !this.#state.downloadBudget(peer).take(length, now)) return false;
    partial.request(block, peer.connection, now + peer.requests.dueMs(now));
    peer.requests.push(partial.index, block, now);
    peer.writer.request(partial.index, block * BLOCK_BYTES, length);
    return true;
  }

  #byEta(): Peer[] {
    const able: Peer[] = [];
    for (const peer of this.#state.peers.values()) {
      if (peer.canRequestAny && peer.idleVersion !== this.#state.demandVersion) able.push(peer);
    }
    return able.length > 1 ? able.sort((a, b) => a.etaMs(this.#state.now) - b.etaMs(this.#state.now)) : able;
  }

  /** Returns how much room is left in the queue. */
  #fill(pieces: Pieces, peer: Peer, room: number): number {
    let left = this.#fillUrgent(pieces, peer, room);
    // The peer may unchoke soon: its queue should not be filled with blocks that no reader is waiting for.
    if (this.#isSoonUnchoked(peer)) return left;
    if (left > 0) left = this.#fillStarted(pieces, peer, left, true);
    while (left > 0) {
      const piece = this.#choose(pieces, peer);
      const partial = piece < 0 ? undefined : this.#start(pieces, peer, piece);
      if (!partial) break;
      const before = left;
      left = this.#take(peer, partial, left);
      if (left === before) break;
    }
    return left > 0 ? this.#fillStarted(pieces, peer, left, false) : 0;
  }

  #fillUrgent(pieces: Pieces, peer: Peer, room: number): number {
    const { urgent, distances } = this.#state.wants;
    if (urgent.length === 0) return room;
    const summary = this.#speedSummary();
    const etaMs = peer.etaMs(this.#state.now);
    let left = this.#isCrowded(pieces, peer) ? this.#fillRare(pieces, peer, room) : room;
    for (let i = this.#state.wants.firstUrgent(pieces.have); i < urgent.length && left > 0; i++) {
      const piece = urgent[i]!;
      if (pieces.have.has(piece) || !peer.canRequest(piece)) continue;
      const distance = distances[i]!;
      // In time: about as soon as the fastest peer, or before all peers together reach that piece.
      const neededMs = distance === 0 ? 0 : (distance * pieces.layout.pieceLength) / summary.bytesPerMs;
      if (etaMs > summary.soonMs && etaMs > neededMs) continue;
      let partial = pieces.partials.get(piece);
      if (partial && (partial.free === 0 || !this.#isAllowed(partial, peer))) continue;
      if (partial && this.#isOnTrack(partial, peer, neededMs)) continue;
      partial ??= this.#start(pieces, peer, piece) ?? this.#startByEviction(pieces, peer, piece);
      if (partial) left -= this.#takeShare(peer, partial, left, distance === 0 ? summary.fastPeers : 1);
      else if (!pieces.partials.has(piece)) break;
    }
    return left;
  }

  /** Whether this peer is one of few seeds shared by many peers, which should not all fetch the same pieces from it. */
  #isCrowded(pieces: Pieces, peer: Peer): boolean {
    return peer.pieces.isAll && pieces.have.count > 0 && this.#isScarce();
  }

  /** Requests pieces that no leecher has, in an order of this engine's own: other peers can then exchange them. */
  #fillRare(pieces: Pieces, peer: Peer, room: number): number {
    let left = room;
    for (const piece of this.#rareFirst(pieces, peer)) {
      if (left === 0) break;
      const partial = pieces.partials.get(piece) ?? this.#start(pieces, peer, piece);
      if (partial && partial.free > 0 && this.#isAllowed(partial, peer))
        left = this.#take(peer, partial, left);
    }
    return left;
  }

  /**
   * Returns wanted pieces that only seeds have, two per connected peer: roughly nearest first, but randomized, because
   * all players of the content need the same pieces next.
   */
  #rareFirst(pieces: Pieces, peer: Peer): number[] {
    const limit = 2 * this.#state.peers.size;
    const rare: number[] = [];
    let budget = MAX_SCAN;
    for (const { start, end } of this.#state.wants.ranges) {
      for (let piece = start; piece < end && rare.length < limit && budget-- > 0; piece++) {
        if (pieces.availability[piece] === 0 && !pieces.have.has(piece) && peer.canRequest(piece))
          rare.push(piece);
      }
    }
    const order = new Map<number, number>();
    for (const [i, piece] of rare.entries()) {
      order.set(piece, (NEAR_WEIGHT * i) / limit + scatter(piece ^ this.#salt) / 0x1_0000_0000);
    }
    return rare.sort((a, b) => order.get(a)! - order.get(b)!);
  }

  /** Whether the peer that started a piece will complete it in time. */
  #isOnTrack(partial: PartialPiece, peer: Peer, neededMs: number): boolean {
    if (partial.owner === undefined || partial.owner === peer.connection || neededMs === 0) return false;
    const owner = this.#state.peers.get(partial.owner);
    if (!owner || owner.isSnubbing || !owner.canRequest(partial.index)) return false;
    const { bytesPerMs } = owner.requests;
    return ((partial.blockCount - partial.doneCount) * BLOCK_BYTES) / bytesPerMs < neededMs / 2;
  }

  /** Requests this peer's share of the piece that a reader waits for; the rest is for the other fast peers. */
  #takeShare(peer: Peer, partial: PartialPiece, room: number, sharers: number): number {
    const share = Math.min(room, Math.ceil(partial.blockCount / Math.max(1, sharers)));
    return share - this.#take(peer, partial, share);
  }

  /** Continues started pieces: with `isOwn` those that this peer started or that have no owner, else all. */
  #fillStarted(pieces: Pieces, peer: Peer, room: number, isOwn: boolean): number {
    let left = room;
    for (const partial of pieces.open) {
      if (left === 0) break;
      if (partial.unwantedSince !== undefined || !peer.canRequest(partial.index)) continue;
      if (isOwn && partial.owner !== undefined && partial.owner !== peer.connection) {
        const owner = this.#state.peers.get(partial.owner);
        if (owner && !owner.isSnubbing && owner.canRequest(partial.index)) continue;
        partial.owner = peer.connection;
      }
      if (this.#isAllowed(partial, peer)) left = this.#take(peer, partial, left);
    }
    return left;
  }

  #take(peer: Peer, partial: PartialPiece, room: number): number {
    let left = room;
    while (left > 0) {
      const block = partial.firstFree();
      if (block < 0 || !this.request(peer, partial, block)) break;
      left--;
    }
    return left;
  }

  /** Returns the rarest piece that a reader wants and this peer has, with readers taking turns; -1 if there is none. */
  #choose(pieces: Pieces, peer: Peer): number {
    const wants = [...this.#state.wants.values()];
    const isShared = this.#isScarce();
    const { busy } = pieces;
    const leastCount = peer.isCounted ? 1 : 0;
    let budget = MAX_SCAN;
    for (let n = 0; n < wants.length && budget > 0; n++) {
      const want = wants[(this.#turn + n) % wants.length]!;
      while (want.cursor < want.end && pieces.have.has(want.cursor)) want.cursor++;
      let best = -1;
      let bestCount = Number.POSITIVE_INFINITY;
      let seen = 0;
      for (let piece = want.cursor; piece < want.end && seen < MAX_CANDIDATES_SEEN && budget > 0; piece++) {
        budget--;
        if (busy.bytes[piece >> 3] === 0xff) {
          piece |= 7;
          continue;
        }
        if (busy.has(piece) || !peer.canRequest(piece)) continue;
        seen++;
        const count = pieces.availability[piece]!;
        if (count > bestCount || (count === bestCount && !this.#isBetter(piece, best, isShared))) continue;
        best = piece;
        bestCount = count;
        // Only this peer and seeds have the piece: no other piece is rarer.
        if (!isShared && count <= leastCount) break;
      }
      if (best < 0) continue;
      this.#turn = (this.#turn + n + 1) % wants.length;
      return best;
    }
    // The search was cut short: another search may find a piece once further pieces are held.
    if (budget === 0) this.#state.isPickingLimited = true;
    return -1;
  }

  /** Of two equally rare pieces: reading order for seeds; among leechers this engine's own order, to have pieces to trade. */
  #isBetter(piece: number, best: number, isShared: boolean): boolean {
    if (!isShared || best < 0) return piece < best;
    return scatter(piece ^ this.#salt) < scatter(best ^ this.#salt);
  }

  /** Whether seeds are few: then leechers depend on each other, and each should fetch different pieces. */
  #isScarce(): boolean {
    let seeds = 0;
    let open = 0;
    for (const peer of this.#state.peers.values()) {
      if (peer.stage !== "open") continue;
      open++;
      if (peer.pieces.isAll) seeds++;
    }
    return open > seeds * SCARCE_PEERS;
  }

  #start(pieces: Pieces, peer: Peer, piece: number): PartialPiece | undefined {
    const partial = pieces.start(piece);
    if (!partial) {
      this.#state.isPickingLimited = true;
      return undefined;
    }
    const { smartBan } = this.#state;
    const { connection } = peer;
    partial.owner = connection;
    if (smartBan.isSuspect(piece)) partial.onlyFor = this.#bestFor(piece);
    else if (smartBan.isAlarmed || smartBan.isOnParole(connection)) partial.onlyFor = connection;
    return this.#isAllowed(partial, peer) ? partial : undefined;
  }

  /** Starts an urgent piece although memory is exhausted, by abandoning the least urgent piece. */
  #startByEviction(pieces: Pieces, peer: Peer, piece: number): PartialPiece | undefined {
    if (pieces.partials.has(piece)) return undefined;
    if (!this.#downloads.abandonUnwanted(true)) {
      const victim = this.#leastUrgent(pieces);
      if (!victim) return undefined;
      this.#downloads.abandon(victim);
    }
    return this.#start(pieces, peer, piece);
  }

  #leastUrgent(pieces: Pieces): PartialPiece | undefined {
    const urgent = new Set(this.#state.wants.urgent);
    let last: PartialPiece | undefined;
    for (const partial of pieces.partials.values()) {
      if (!urgent.has(partial.index) && (!last || partial.doneCount <= last.doneCount)) last = partial;
    }
    return last;
  }

  /** Whether `peer` may send blocks of a piece: suspect pieces and peers on parole have one sender, so that a failure
   * proves who is at fault. */
  #isAllowed(partial: PartialPiece, peer: Peer): boolean {
    const { smartBan } = this.#state;
    if (smartBan.isQuiet && partial.onlyFor === undefined) return true;
    if (partial.onlyFor === undefined && smartBan.isSuspect(partial.index)) {
      partial.onlyFor = this.#bestFor(partial.index);
    }
    if (partial.onlyFor === undefined)
      return !smartBan.isOnParole(peer.connection) || partial.doneCount === 0;
    if (partial.onlyFor === peer.connection) return true;
    const holder = this.#state.peers.get(partial.onlyFor);
    if (holder && !holder.isSnubbing && holder.canRequest(partial.index)) return false;
    partial.onlyFor = peer.connection;
    return true;
  }

  #bestFor(piece: number): number | undefined {
    const able: number[] = [];
    for (const peer of this.#state.peers.values()) {
      if (peer.canRequestAny && !peer.isSnubbing && peer.canRequest(piece)) able.push(peer.connection);
    }
    return this.#state.smartBan.bestFor(able);
  }
}

/** Hashes a number evenly to 32 bits. */
function scatter(value: number): number {
  const mixed = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
