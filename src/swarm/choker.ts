import type { Random } from "../base/random.ts";
import { after, type Instant } from "../base/time.ts";
import type { ConnectionId } from "./contract.ts";
import { CHOKE_INTERVAL_MS, OPTIMISTIC_INTERVAL_MS } from "./limits.ts";

/** What the choker knows of one connected peer. Rates in bytes a second. */
export interface ChokerPeer {
  readonly id: ConnectionId;
  /** It is interested in us. */
  readonly isInterested: boolean;
  /** BEP 21 `upload_only`, or a seed: wants nothing, so that it never takes a slot. */
  readonly isUploadOnly: boolean;
  /** It owes us blocks and has sent none for long (BEP 3, anti-snubbing): optimistic slots only. */
  readonly isSnubbing: boolean;
  /** From it to us. */
  readonly bytesPerSecondDown: number;
  /** From us to it. */
  readonly bytesPerSecondUp: number;
  readonly connectedAt: Instant;
}

/** Slots without an upload limit: libtorrent's default. More would share a home uplink too thinly. */
const OPEN_SLOTS = 8;
/** With a limit each slot should carry about this much, or nobody is served well. */
const BYTES_PER_SECOND_A_SLOT = 32 * 1024;
const MIN_SLOTS = 3;
const MAX_SLOTS = 20;
/** One slot in four goes round among all others, so that newcomers and unknown good peers get a first block. */
const SLOTS_AN_OPTIMISTIC = 4;
/** BEP 3: a newcomer is three times as likely to get the optimistic slot, for so long. */
const NEWCOMER_WEIGHT = 3;
const NEWCOMER_MS = 60_000;
/** A seed serves a peer for a minute in one go, then whoever waits longest: nobody can hold a seed's slots for good. */
const SEED_TURN_MS = 60_000;

/** Decides whom we upload to (BEP 3): who gives us most, one in four by turns, and when seeding everybody by turns. */
export class Choker {
  #slots = 0;
  readonly #random: Random;
  /** Unchoked peers, with the time their turn began. */
  readonly #unchoked = new Map<ConnectionId, Instant>();
  /** When a peer last had a slot. */
  readonly #servedAt = new Map<ConnectionId, Instant>();
  #optimistic: ConnectionId[] = [];
  #roundAt: Instant | undefined;
  #optimisticAt: Instant | undefined;

  /** `uploadLimit` in bytes a second; 0 for none. */
  constructor(uploadLimit: number, random: Random) {
    this.#random = random;
    this.limit(uploadLimit);
  }

  /** Another limit from the next round on. */
  limit(uploadLimit: number): void {
    this.#slots = uploadLimit === 0 ? OPEN_SLOTS : slotsFor(uploadLimit);
  }

  /** How many peers are unchoked at once, at most. */
  get slots(): number {
    return this.#slots;
  }

  /** When the next round is due; undefined before the first. */
  nextWake(): Instant | undefined {
    return this.#roundAt;
  }

  /**
   * Whom to leave unchoked at `now`. Each 10 s a whole round; in between (call it whenever a peer joins, leaves or
   * changes its interest) slots only get freed and free ones filled, so that the first interested peers need not wait.
   */
  round(peers: readonly ChokerPeer[], isSeeding: boolean, now: Instant): ReadonlySet<ConnectionId> {
    const eligible = peers.filter((peer) => peer.isInterested && !peer.isUploadOnly);
    this.#forget(peers, eligible, now);
    const isWhole = this.#roundAt === undefined || now >= this.#roundAt;
    if (isWhole) this.#roundAt = after(now, CHOKE_INTERVAL_MS);
    if (isWhole) this.#turnOptimistic(eligible, now);
    const regular = this.#slots - this.#optimistic.length;
    const ranked = this.#rank(eligible, isSeeding, isWhole, now);
    const chosen = new Set<ConnectionId>(this.#optimistic);
    for (const peer of ranked) {
      if (chosen.size >= regular + this.#optimistic.length) break;
      chosen.add(peer.id);
    }
    this.#apply(chosen, now);
    return chosen;
  }

  #rank(eligible: readonly ChokerPeer[], isSeeding: boolean, isWhole: boolean, now: Instant): ChokerPeer[] {
    const others = eligible.filter((peer) => !this.#optimistic.includes(peer.id));
    if (!isWhole) {
      return others.sort((a, b) => Number(this.#unchoked.has(b.id)) - Number(this.#unchoked.has(a.id)));
    }
    if (isSeeding) return others.sort((a, b) => this.#compareAsSeed(a, b, now));
    return others.sort(
      (a, b) => Number(a.isSnubbing) - Number(b.isSnubbing) || b.bytesPerSecondDown - a.bytesPerSecondDown,
    );
  }

  /** In the middle of a turn first; then who waits longest; then whose turn is over, the fastest taker first. */
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

  #turnOptimistic(eligible: readonly ChokerPeer[], now: Instant): void {
    const count = Math.min(Math.floor(this.#slots / SLOTS_AN_OPTIMISTIC) || 1, eligible.length);
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

  #forget(peers: readonly ChokerPeer[], eligible: readonly ChokerPeer[], now: Instant): void {
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
  return Math.max(MIN_SLOTS, Math.min(MAX_SLOTS, Math.floor(uploadLimit / BYTES_PER_SECOND_A_SLOT)));
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
