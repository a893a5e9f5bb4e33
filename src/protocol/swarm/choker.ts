import type { Random } from "../../base/random.ts";
import { after, type Instant } from "../../base/time.ts";
import type { ConnectionId } from "./contract.ts";
import { CHOKE_INTERVAL_MS, OPTIMISTIC_INTERVAL_MS } from "./limits.ts";

/** What the choker needs to know about a connected peer. Rates in bytes a second. */
export interface ChokerPeer {
  readonly id: ConnectionId;
  /** The peer is interested in this engine's pieces. */
  readonly isInterested: boolean;
  /** BEP 21 `upload_only`, or a seed: needs no data, so it never takes a slot. */
  readonly isUploadOnly: boolean;
  /** The peer owes blocks and has stalled (BEP 3, anti-snubbing): it gets optimistic slots only. */
  readonly isSnubbing: boolean;
  /** From the peer to this engine. */
  readonly bytesPerSecondDown: number;
  /** From this engine to the peer. */
  readonly bytesPerSecondUp: number;
  readonly connectedAt: Instant;
}

/** Slots without an upload limit: the default of libtorrent. More would divide a typical uplink too finely. */
const OPEN_SLOTS = 8;
/** With an upload limit, each slot should get at least this rate. */
const BYTES_PER_SECOND_PER_SLOT = 32 * 1024;
const MIN_SLOTS = 3;
const MAX_SLOTS = 20;
/** One slot in four rotates among the remaining peers, so that new and untested peers get a first block. */
const SLOTS_PER_OPTIMISTIC = 4;
/** BEP 3: during this time a new peer is three times as likely to get an optimistic slot. */
const NEWCOMER_WEIGHT = 3;
const NEWCOMER_MS = 60_000;
/** A seed serves a peer for a minute, then the longest waiting one, so that no peer keeps a slot forever. */
const SEED_TURN_MS = 60_000;

/** Decides which peers to unchoke (BEP 3): the fastest uploaders, one slot in four by rotation; all by rotation when
 * seeding. */
export class Choker {
  #slots = 0;
  readonly #random: Random;
  /** Unchoked peers, with the start of their turn. */
  readonly #unchoked = new Map<ConnectionId, Instant>();
  /** When a peer last had a slot. */
  readonly #servedAt = new Map<ConnectionId, Instant>();
  #optimistic: ConnectionId[] = [];
  #roundAt: Instant | undefined;
  #optimisticAt: Instant | undefined;

  /** `uploadLimit` in bytes a second; 0 for unlimited. */
  constructor(uploadLimit: number, random: Random) {
    this.#random = random;
    this.setLimit(uploadLimit);
  }

  /** Applies another upload limit from the next round on. */
  setLimit(uploadLimit: number): void {
    this.#slots = uploadLimit === 0 ? OPEN_SLOTS : slotsFor(uploadLimit);
  }

  /** How many peers are unchoked at once. */
  get slots(): number {
    return this.#slots;
  }

  /** When the next round is due; undefined before the first. */
  nextWake(): Instant | undefined {
    return this.#roundAt;
  }

  /**
   * Returns the peers to unchoke at `now`. A full round happens every 10 s. Call it also when a peer joins, leaves or
   * changes its interest: then it only frees slots and fills free ones, so that the first interested peers do not wait.
   */
  round(peers: readonly ChokerPeer[], isSeeding: boolean, now: Instant): ReadonlySet<ConnectionId> {
    const eligible = peers.filter((peer) => peer.isInterested && !peer.isUploadOnly);
    this.#dropIneligible(peers, eligible, now);
    const isFullRound = this.#roundAt === undefined || now >= this.#roundAt;
    if (isFullRound) this.#roundAt = after(now, CHOKE_INTERVAL_MS);
    if (isFullRound) this.#rotateOptimistic(eligible, now);
    const regular = this.#slots - this.#optimistic.length;
    const ranked = this.#rank(eligible, isSeeding, isFullRound, now);
    const chosen = new Set<ConnectionId>(this.#optimistic);
    for (const peer of ranked) {
      if (chosen.size >= regular + this.#optimistic.length) break;
      chosen.add(peer.id);
    }
    this.#apply(chosen, now);
    return chosen;
  }

  #rank(
    eligible: readonly ChokerPeer[],
    isSeeding: boolean,
    isFullRound: boolean,
    now: Instant,
  ): ChokerPeer[] {
    const others = eligible.filter((peer) => !this.#optimistic.includes(peer.id));
    if (!isFullRound) {
      return others.sort((a, b) => Number(this.#unchoked.has(b.id)) - Number(this.#unchoked.has(a.id)));
    }
    if (isSeeding) return others.sort((a, b) => this.#compareAsSeed(a, b, now));
    return others.sort(
      (a, b) => Number(a.isSnubbing) - Number(b.isSnubbing) || b.bytesPerSecondDown - a.bytesPerSecondDown,
    );
  }

  /** Peers in mid-turn first; then the longest waiting; then those whose turn is over, the fastest receiver first. */
  #compareAsSeed(a: ChokerPeer, b: ChokerPeer, now: Instant): number {
    const classes = [a, b].map((peer) => {
      const since = this.#unchoked.get(peer.id);
      if (since === undefined) return 1;
      return now - since < SEED_TURN_MS ? 0 : 2;
    });
    if (classes[0] !== classes[1]) return classes[0]! - classes[1]!;
    if (classes[0] !== 1) return b.bytesPerSecondUp - a.bytesPerSecondUp;
    return this.#waitingSince(a) - this.#waitingSince(b);
  }

  #waitingSince(peer: ChokerPeer): number {
    return this.#servedAt.get(peer.id) ?? peer.connectedAt;
  }

  #rotateOptimistic(eligible: readonly ChokerPeer[], now: Instant): void {
    const count = Math.min(Math.floor(this.#slots / SLOTS_PER_OPTIMISTIC) || 1, eligible.length);
    const isTurn = this.#optimisticAt === undefined || now >= this.#optimisticAt;
    if (!isTurn && this.#optimistic.length >= count) return;
    if (isTurn) this.#optimistic = [];
    if (isTurn) this.#optimisticAt = after(now, OPTIMISTIC_INTERVAL_MS);
    const waiting = eligible.filter((peer) => !this.#unchoked.has(peer.id));
    while (this.#optimistic.length < count && waiting.length > 0) {
      const at = weightedIndex(waiting, this.#random, now);
      this.#optimistic.push(waiting[at]!.id);
      waiting.splice(at, 1);
    }
  }

  #dropIneligible(peers: readonly ChokerPeer[], eligible: readonly ChokerPeer[], now: Instant): void {
    const present = new Set(peers.map((peer) => peer.id));
    const able = new Set(eligible.map((peer) => peer.id));
    for (const id of this.#servedAt.keys()) if (!present.has(id)) this.#servedAt.delete(id);
    for (const id of this.#unchoked.keys()) {
      if (able.has(id)) continue;
      this.#unchoked.delete(id);
      if (present.has(id)) this.#servedAt.set(id, now);
    }
    this.#optimistic = this.#optimistic.filter((id) => able.has(id));
  }

  #apply(chosen: ReadonlySet<ConnectionId>, now: Instant): void {
    for (const id of this.#unchoked.keys()) {
      if (chosen.has(id)) continue;
      this.#unchoked.delete(id);
      this.#servedAt.set(id, now);
    }
    for (const id of chosen) if (!this.#unchoked.has(id)) this.#unchoked.set(id, now);
  }
}

function slotsFor(uploadLimit: number): number {
  return Math.max(MIN_SLOTS, Math.min(MAX_SLOTS, Math.floor(uploadLimit / BYTES_PER_SECOND_PER_SLOT)));
}

function weightedIndex(peers: readonly ChokerPeer[], random: Random, now: Instant): number {
  const weights = peers.map((peer) => (now - peer.connectedAt < NEWCOMER_MS ? NEWCOMER_WEIGHT : 1));
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0);
  for (const [i, weight] of weights.entries()) {
    left -= weight;
    if (left < 0) return i;
  }
  return peers.length - 1;
}
