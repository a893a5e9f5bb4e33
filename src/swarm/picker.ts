import { randomBelow } from "../base/random.ts";
import type { Instant } from "../base/time.ts";
import type { Downloads } from "./downloads.ts";
import { BLOCK_BYTES } from "./limits.ts";
import type { PartialPiece } from "./partial-piece.ts";
import type { Peer } from "./peer.ts";
import type { Pieces } from "./pieces.ts";
import type { SwarmState } from "./state.ts";

/** Pieces looked at when one is started: rarity beyond this many candidates matters little to a stream. */
const MAX_CANDIDATES_SEEN = 256;
/** Pieces passed over (held, started, or not the peer's) in one search, whatever the readers want. */
const MAX_SCAN = 4096;
/** A peer whose answer would come this much later than the quickest one's gets no block at a reader's feet. */
const SLACK_MS = 100;
/** Among pieces that only seeds have, how much being near counts against chance: measured, 1 and 4 both stall more. */
const NEAR_WEIGHT = 2;
/** So long after the handshakes a peer that chokes us is asked for urgent pieces only (BEP 6, allowed fast). */
const CHOKED_WAIT_MS = 5_000;
/** With more peers than this to a seed, seeds alone cannot feed everybody. */
const SCARCE_PEERS = 4;

/** What the picker knows of all peers together, for one round of requests. */
interface Outlook {
  /** Good for all that happens at this instant. */
  readonly at: Instant;
  /** An answer within so many milliseconds is about as soon as the quickest peer's. */
  readonly soonMs: number;
  /** All peers together, in bytes a millisecond; 0 while unknown. */
  readonly bytesPerMs: number;
  /** Peers that would answer about as soon. */
  readonly quickPeers: number;
}

/**
 * Decides what to ask of whom. Urgent pieces first, in reading order, of peers that deliver in time; then pieces that
 * are started; then new ones within the wants, the rarest first, readers taking turns.
 */
export class Picker {
  readonly #state: SwarmState;
  readonly #downloads: Downloads;
  /** Which reader may start the next piece. */
  #turn = 0;
  #lastOutlook: Outlook | undefined;
  /** Makes our order of equally rare pieces another than everybody else's. */
  readonly #salt: number;

  constructor(state: SwarmState, downloads: Downloads) {
    this.#state = state;
    this.#salt = randomBelow(state.setup.random, 0x7fff_ffff);
    this.#downloads = downloads;
  }

  /** Asks of every peer that has room, if there may be anything new to ask. */
  refillAll(): void {
    if (!this.#state.pieces || this.#state.wants.readers === 0) return;
    for (const peer of this.#byEta()) this.refill(peer);
  }

  /** Asks of one peer as much as it has room for. */
  refill(peer: Peer): void {
    const { pieces, demandVersion } = this.#state;
    if (!pieces || !peer.mayGiveAny || peer.idleVersion === demandVersion) return;
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

  #outlook(): Outlook {
    const { now, peers } = this.#state;
    if (this.#lastOutlook?.at === now) return this.#lastOutlook;
    let leastEtaMs = Number.POSITIVE_INFINITY;
    let bytesPerMs = 0;
    for (const peer of peers.values()) {
      if (!peer.mayGiveAny || peer.isChoking) continue;
      leastEtaMs = Math.min(leastEtaMs, peer.etaMs(now));
      bytesPerMs += peer.requests.bytesPerMs;
    }
    const soonMs = Math.max(2 * leastEtaMs, leastEtaMs + SLACK_MS);
    let quickPeers = 0;
    for (const peer of peers.values())
      if (peer.mayGiveAny && !peer.isChoking && peer.etaMs(now) <= soonMs) quickPeers++;
    this.#lastOutlook = { at: now, soonMs, bytesPerMs, quickPeers };
    return this.#lastOutlook;
  }

  /** Asks `peer` for `block`; false where the download limit forbids it now. */
  ask(peer: Peer, partial: PartialPiece, block: number): boolean {
    const { now } = this.#state;
    const length = partial.blockLength(block);
    if (peer.requests.isFull || !this.#state.downloadBudget(peer).take(length, now)) return false;
    partial.ask(block, peer.connection, now + peer.requests.dueMs(now));
    peer.requests.push(partial.index, block, now);
    peer.writer.request(partial.index, block * BLOCK_BYTES, length);
    return true;
  }

  #byEta(): Peer[] {
    const able: Peer[] = [];
    for (const peer of this.#state.peers.values()) {
      if (peer.mayGiveAny && peer.idleVersion !== this.#state.demandVersion) able.push(peer);
    }
    return able.length > 1 ? able.sort((a, b) => a.etaMs(this.#state.now) - b.etaMs(this.#state.now)) : able;
  }

  /** Returns how many more requests there would be room for. */
  #fill(pieces: Pieces, peer: Peer, room: number): number {
    let left = this.#fillUrgent(pieces, peer, room);
    // It may unchoke us any moment: then its queue should not be full of what nobody waits for.
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
    const outlook = this.#outlook();
    const etaMs = peer.etaMs(this.#state.now);
    let left = this.#isCrowded(pieces, peer) ? this.#fillRare(pieces, peer, room) : room;
    for (let i = this.#state.wants.firstUrgent(pieces.have); i < urgent.length && left > 0; i++) {
      const piece = urgent[i]!;
      if (pieces.have.has(piece) || !peer.mayGive(piece)) continue;
      const distance = distances[i]!;
      // In time: about as soon as the quickest peer, or before all of them together get that far.
      const neededMs = distance === 0 ? 0 : (distance * pieces.layout.pieceLength) / outlook.bytesPerMs;
      if (etaMs > outlook.soonMs && etaMs > neededMs) continue;
      let partial = pieces.partials.get(piece);
      if (partial && (partial.free === 0 || !this.#isFor(partial, peer))) continue;
      if (partial && this.#isOnTrack(partial, peer, neededMs)) continue;
      partial ??= this.#start(pieces, peer, piece) ?? this.#startByForce(pieces, peer, piece);
      if (partial) left -= this.#takeShare(peer, partial, left, distance === 0 ? outlook.quickPeers : 1);
      else if (!pieces.partials.has(piece)) break;
    }
    return left;
  }

  /** Whether this peer is one of few seeds that many share: then all must not fetch the same from it. */
  #isCrowded(pieces: Pieces, peer: Peer): boolean {
    return peer.pieces.isAll && pieces.have.count > 0 && this.#isScarce();
  }

  /** Fetches pieces that no leecher has, in an order of our own: what the others have meanwhile they give us. */
  #fillRare(pieces: Pieces, peer: Peer, room: number): number {
    let left = room;
    for (const piece of this.#rareFirst(pieces, peer)) {
      if (left === 0) break;
      const partial = pieces.partials.get(piece) ?? this.#start(pieces, peer, piece);
      if (partial && partial.free > 0 && this.#isFor(partial, peer)) left = this.#take(peer, partial, left);
    }
    return left;
  }

  /**
   * The wanted pieces that only seeds have, the next two for each peer: near ones first by and large, but scattered,
   * as everybody who plays the same needs the same next.
   */
  #rareFirst(pieces: Pieces, peer: Peer): number[] {
    const limit = 2 * this.#state.peers.size;
    const rare: number[] = [];
    let budget = MAX_SCAN;
    for (const { start, end } of this.#state.wants.ranges) {
      for (let piece = start; piece < end && rare.length < limit && budget-- > 0; piece++) {
        if (pieces.availability[piece] === 0 && !pieces.have.has(piece) && peer.mayGive(piece))
          rare.push(piece);
      }
    }
    const order = new Map<number, number>();
    for (const [i, piece] of rare.entries()) {
      order.set(piece, (NEAR_WEIGHT * i) / limit + scatter(piece ^ this.#salt) / 0x1_0000_0000);
    }
    return rare.sort((a, b) => order.get(a)! - order.get(b)!);
  }

  /** Whether the peer that began a piece will have finished it when it is needed. */
  #isOnTrack(partial: PartialPiece, peer: Peer, neededMs: number): boolean {
    if (partial.owner === undefined || partial.owner === peer.connection || neededMs === 0) return false;
    const owner = this.#state.peers.get(partial.owner);
    if (!owner || owner.isSnubbing || !owner.mayGive(partial.index)) return false;
    const { bytesPerMs } = owner.requests;
    return ((partial.blockCount - partial.doneCount) * BLOCK_BYTES) / bytesPerMs < neededMs / 2;
  }

  /** Takes blocks of the piece a reader waits for, and leaves the other quick peers their share. */
  #takeShare(peer: Peer, partial: PartialPiece, room: number, sharers: number): number {
    const share = Math.min(room, Math.ceil(partial.blockCount / Math.max(1, sharers)));
    return share - this.#take(peer, partial, share);
  }

  /** Goes on with pieces that were started: those this peer has begun or nobody works on, or those of others. */
  #fillStarted(pieces: Pieces, peer: Peer, room: number, isOwn: boolean): number {
    let left = room;
    for (const partial of pieces.open) {
      if (left === 0) break;
      if (partial.unwantedSince !== undefined || !peer.mayGive(partial.index)) continue;
      if (isOwn && partial.owner !== undefined && partial.owner !== peer.connection) {
        const owner = this.#state.peers.get(partial.owner);
        if (owner && !owner.isSnubbing && owner.mayGive(partial.index)) continue;
        partial.owner = peer.connection;
      }
      if (this.#isFor(partial, peer)) left = this.#take(peer, partial, left);
    }
    return left;
  }

  #take(peer: Peer, partial: PartialPiece, room: number): number {
    let left = room;
    while (left > 0) {
      const block = partial.firstFree();
      if (block < 0 || !this.ask(peer, partial, block)) break;
      left--;
    }
    return left;
  }

  /** The rarest piece that a reader wants and this peer has; readers take turns. -1 where there is none. */
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
        if (busy.has(piece) || !peer.mayGive(piece)) continue;
        seen++;
        const count = pieces.availability[piece]!;
        if (count > bestCount || (count === bestCount && !this.#isBetter(piece, best, isShared))) continue;
        best = piece;
        bestCount = count;
        // Nothing is rarer than what only this peer (and those that have all) has.
        if (!isShared && count <= leastCount) break;
      }
      if (best < 0) continue;
      this.#turn = (this.#turn + n + 1) % wants.length;
      return best;
    }
    // Not all was looked at: there may be something once a piece further on is held.
    if (budget === 0) this.#state.isLimited = true;
    return -1;
  }

  /** Of two pieces equally rare: in order from seeds; among leechers in an order of our own, to have what others lack. */
  #isBetter(piece: number, best: number, isShared: boolean): boolean {
    if (!isShared || best < 0) return piece < best;
    return scatter(piece ^ this.#salt) < scatter(best ^ this.#salt);
  }

  /** Few of our peers have everything: then the others need what we fetch, and each must fetch something else. */
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
      this.#state.isLimited = true;
      return undefined;
    }
    const { smartBan } = this.#state;
    const { connection } = peer;
    partial.owner = connection;
    if (smartBan.isSuspect(piece)) partial.onlyFor = this.#bestFor(piece);
    else if (smartBan.isAlarmed || smartBan.isOnParole(connection)) partial.onlyFor = connection;
    return this.#isFor(partial, peer) ? partial : undefined;
  }

  /** A reader waits and the budget is spent: the piece that is needed last makes room. */
  #startByForce(pieces: Pieces, peer: Peer, piece: number): PartialPiece | undefined {
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

  /** Pieces under suspicion and peers on parole keep to themselves, so that blame is certain. */
  #isFor(partial: PartialPiece, peer: Peer): boolean {
    const { smartBan } = this.#state;
    if (smartBan.isQuiet && partial.onlyFor === undefined) return true;
    if (partial.onlyFor === undefined && smartBan.isSuspect(partial.index)) {
      partial.onlyFor = this.#bestFor(partial.index);
    }
    if (partial.onlyFor === undefined)
      return !smartBan.isOnParole(peer.connection) || partial.doneCount === 0;
    if (partial.onlyFor === peer.connection) return true;
    const holder = this.#state.peers.get(partial.onlyFor);
    if (holder && !holder.isSnubbing && holder.mayGive(partial.index)) return false;
    partial.onlyFor = peer.connection;
    return true;
  }

  #bestFor(piece: number): number | undefined {
    const able: number[] = [];
    for (const peer of this.#state.peers.values()) {
      if (peer.mayGiveAny && !peer.isSnubbing && peer.mayGive(piece)) able.push(peer.connection);
    }
    return this.#state.smartBan.bestFor(able);
  }
}

/** Spreads whole numbers evenly over 32 bits. */
function scatter(value: number): number {
  const mixed = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
